// A picture changed by hand, as idc_core/perturbation/editing.py changes it.

// Turn, shift, noise, a step along `direction`, then paint: places counted row by row, with their colours in 0..255.
function changePicture([channels, height, width], { original, direction, noise }, edits) {
  const changed = edits.degrees || edits.right || edits.down ? moved(channels, height, width, original, edits) : original.slice();
  if (edits.noise || edits.epsilon) {
    for (let at = 0; at < changed.length; at++) {
      const step = (edits.noise ?? 0) * noise[at] + (edits.epsilon ?? 0) * direction[at];
      changed[at] = Math.min(1, Math.max(0, changed[at] + step));
    }
  }
  const pixels = height * width;
  for (const [place, ...colour] of edits.painted ?? []) {
    const grey = colour.reduce((sum, part) => sum + part, 0) / 3;
    for (let channel = 0; channel < channels; channel++) {
      changed[channel * pixels + place] = (channels === 3 ? colour[channel] : grey) / 255;
    }
  }
  return changed;
}

// Read every pixel where it was before, between its neighbours; past an edge, the edge is continued.
function moved(channels, height, width, original, { degrees = 0, right = 0, down = 0 }) {
  const cosine = Math.cos((degrees * Math.PI) / 180), sine = Math.sin((degrees * Math.PI) / 180);
  const result = new Float32Array(original.length), pixels = height * width;
  const within = (at, side) => Math.min(side - 1, Math.max(0, at));
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const across = column + 0.5 - width / 2 - right, along = row + 0.5 - height / 2 - down;
      const x = within(cosine * across - sine * along + width / 2 - 0.5, width);
      const y = within(sine * across + cosine * along + height / 2 - 0.5, height);
      const left = Math.floor(x), top = Math.floor(y), next = within(left + 1, width), below = within(top + 1, height);
      const [u, v] = [x - left, y - top];
      for (let channel = 0; channel < channels; channel++) {
        const at = (line, place) => original[channel * pixels + line * width + place];
        const upper = (1 - u) * at(top, left) + u * at(top, next), lower = (1 - u) * at(below, left) + u * at(below, next);
        result[channel * pixels + row * width + column] = (1 - v) * upper + v * lower;
      }
    }
  }
  return result;
}
