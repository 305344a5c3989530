// What is drawn of a changed test: the picture, its relevance, bars of all classes, and each neuron's place.

const MOST_CLASSES = 12; // bars; of more classes those with the highest of either probability
const DOTTED = 0.1; // of the strongest relevance, from which a pixel against has a dot
const SVG = "http://www.w3.org/2000/svg";

function element(name, parent, classes = "", text = "") {
  const made = document.createElement(name);
  made.className = classes;
  made.textContent = text;
  parent.append(made);
  return made;
}

function drawn(name, parent, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}

// A share of one in per cent, with one decimal as all others beside it.
function percent(share) {
  return share > 0 && share < 0.0005 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`;
}

function signed(value, digits) {
  return `${value < 0 ? "\u2212" : "+"}${Math.abs(value).toFixed(digits)}`;
}

function softmax(scores) {
  const most = scores.reduce((one, other) => Math.max(one, other), -Infinity);
  const powers = Array.from(scores, (score) => Math.exp(score - most));
  const sum = powers.reduce((one, other) => one + other, 0);
  return powers.map((power) => power / sum);
}

// Colours of relevance from -1 to 1, between anchors.
function colourAt(anchors, share) {
  const place = ((Math.min(1, Math.max(-1, share)) + 1) / 2) * (anchors.length - 1);
  const low = Math.min(anchors.length - 2, Math.floor(place));
  return anchors[low].map((part, channel) => Math.round(part + (anchors[low + 1][channel] - part) * (place - low)));
}

function strongest(values) {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
}

// The picture in the canvas's own pixels; channels other than one or three are shown by their mean.
function drawPicture(canvas, [channels, height, width], values) {
  const picture = new ImageData(width, height), pixels = height * width;
  for (let pixel = 0; pixel < pixels; pixel++) {
    let mean = 0;
    for (let channel = 0; channel < channels; channel++) mean += values[channel * pixels + pixel] / channels;
    for (let part = 0; part < 3; part++) {
      picture.data[4 * pixel + part] = Math.round(255 * (channels === 3 ? values[part * pixels + pixel] : mean));
    }
    picture.data[4 * pixel + 3] = 255;
  }
  canvas.getContext("2d").putImageData(picture, 0, 0);
}

// Relevance (height, width), with a dot on pixels against, so that colour is not the only sign.
function drawHeat(canvas, height, width, relevance, anchors) {
  const limit = strongest(relevance), times = Math.round(canvas.width / width), context = canvas.getContext("2d");
  for (let pixel = 0; pixel < relevance.length; pixel++) {
    const colour = colourAt(anchors, relevance[pixel] / limit);
    const x = (pixel % width) * times, y = Math.floor(pixel / width) * times;
    context.fillStyle = `rgb(${colour})`;
    context.fillRect(x, y, times, times);
    if (times >= 4 && relevance[pixel] < -DOTTED * limit) {
      const size = Math.floor(times / 4), start = Math.floor((times - size) / 2);
      context.fillStyle = (colour[0] + colour[1] + colour[2]) / 3 > 110 ? "#141414" : "#ffffff";
      context.fillRect(x + start, y + start, size, size);
    }
  }
  return limit;
}

// One row per class: its bar now, over that of before, and both in numbers.
function drawClasses(body, names, before, now) {
  const order = names.map((_, index) => index);
  if (names.length > MOST_CLASSES) {
    order.sort((one, other) => Math.max(before[other], now[other]) - Math.max(before[one], now[one]));
    order.length = MOST_CLASSES;
  }
  while (body.rows.length > order.length) body.deleteRow(-1);
  while (body.rows.length < order.length) {
    const row = body.insertRow();
    element("th", row).scope = "row";
    const bars = element("td", row, "bars");
    element("i", bars, "was");
    element("i", bars, "is");
    element("td", row);
    element("td", row);
  }
  order.forEach((index, place) => {
    const { cells, classList } = body.rows[place];
    cells[0].textContent = names[index];
    cells[1].children[0].style.width = `${100 * before[index]}%`;
    cells[1].children[1].style.width = `${100 * now[index]}%`;
    cells[2].textContent = percent(now[index]);
    cells[3].textContent = percent(before[index]);
    classList.toggle("predicted", now[index] === Math.max(...now));
  });
}

const WIDE = 132, HIGH = 46, FOOT = 10; // of a neuron's histogram, and the room below it for marks

function clusterOf(neuron, activation) {
  return neuron.boundaries.filter((end) => activation > end).length;
}

// Draw the histograms once; return what moves the marks and says the clusters.
function drawNeurons(parent, neurons) {
  parent.replaceChildren();
  const across = ({ low, high }, value) => Math.min(WIDE - 4, Math.max(4, ((value - low) / (high - low || 1)) * WIDE));
  const parts = neurons.map((neuron) => {
    const figure = element("figure", parent), svg = drawn("svg", figure, { viewBox: `0 0 ${WIDE} ${HIGH + FOOT}`, role: "img" });
    const most = Math.sqrt(Math.max(...neuron.counts)), width = WIDE / neuron.counts.length;
    neuron.counts.forEach((count, bin) => {
      const height = (HIGH * Math.sqrt(count)) / most; // roots, so that rare activations are seen beside silence
      drawn("rect", svg, { class: "bin", x: bin * width, y: HIGH - height, width: width - 0.5, height });
    });
    for (const end of neuron.boundaries) {
      const x = across(neuron, end);
      drawn("line", svg, { class: "end", x1: x, x2: x, y1: 0, y2: HIGH });
    }
    const mark = (name) => drawn("path", svg, { class: name, d: `M0 ${HIGH} l-5 ${FOOT - 1} h10 z` });
    return { neuron, svg, was: mark("was"), is: mark("is"), caption: element("figcaption", figure) };
  });
  return (before, now) =>
    parts.forEach(({ neuron, svg, was, is, caption }, index) => {
      was.setAttribute("transform", `translate(${across(neuron, before[index])})`);
      is.setAttribute("transform", `translate(${across(neuron, now[index])})`);
      const first = clusterOf(neuron, before[index]), last = clusterOf(neuron, now[index]);
      const jump = first === last ? `${last}` : `${first} \u2192 ${last}`;
      caption.textContent = `${neuron.name}: ${jump}`;
      caption.classList.toggle("jumped", first !== last);
      svg.setAttribute("aria-label", `${neuron.name}, activation ${now[index].toPrecision(3)}, cluster ${jump}`);
    });
}
