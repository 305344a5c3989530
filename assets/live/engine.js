// A network that is a chain of layers, run where its input is changed: scores, the activations of one layer, and the
// relevance of the input by LRP-epsilon, in which biases keep their share. The program comes from
// idc_core/tracing/live_program.py; numbers are those of the engine there.
//
// Values lie as in PyTorch: channels, rows, columns. Sums are added up in double precision and kept in single, so that
// values that are equal there, as two winners of a pooling, are equal here.

class Chain {
  // `weights` are those of all steps, one after the other; `epsilon` damps sums that nearly cancel.
  constructor(program, weights, epsilon) {
    let from = 0;
    const take = (size) => weights.subarray(from, (from += size));
    this.layer = program.layer;
    this.epsilon = epsilon;
    this.steps = program.steps.map((step, number) => {
      const before = number ? program.steps[number - 1].shape : program.shape;
      const laid = { ...step, before, inputs: size(before), outputs: size(step.shape) };
      return { ...laid, weight: take(step.weights), bias: take(step.biases) };
    });
    this.sums = this.steps.map((step) => new Float64Array(step.outputs)); // of the way there
    this.backs = this.steps.map((step) => new Float64Array(step.inputs)); // of the way back
    this.values = [null, ...this.steps.map((step) => new Float32Array(step.outputs))];
  }

  // Return the scores, the activation of each neuron of the layer, and the relevance of the input for the class that
  // is predicted. What is returned is overwritten by the next run.
  run(input) {
    const { values, steps } = this;
    values[0] = input;
    steps.forEach((step, number) => FORWARD[step.kind](step, values[number], values[number + 1], this.sums[number]));
    const scores = values[steps.length];
    const target = scores.indexOf(scores.reduce((most, score) => Math.max(most, score)));
    let relevance = new Float64Array(scores.length);
    relevance[target] = scores[target];
    for (let number = steps.length - 1; number >= 0; number--) {
      const back = this.backs[number];
      relevance = BACK[steps[number].kind](steps[number], values[number], values[number + 1], relevance, back, this.epsilon);
    }
    return { scores, target, relevance, activations: this.neurons() };
  }

  // The mean of every channel of the layer over its positions.
  neurons() {
    const [channels, ...sides] = this.steps[this.layer - 1].shape;
    const positions = size(sides), values = this.values[this.layer];
    return Float32Array.from({ length: channels }, (_, channel) => {
      let sum = 0;
      for (let at = 0; at < positions; at++) sum += values[channel * positions + at];
      return sum / positions;
    });
  }
}

function size(shape) {
  return shape.reduce((product, side) => product * side, 1);
}

// What of the relevance of a sum falls to each unit of it: the relevance, divided by the damped sum.
function shares(sums, relevance, epsilon) {
  return relevance.map((part, at) => part && part / (sums[at] + (sums[at] < 0 ? -epsilon : epsilon)));
}

// Hand every value its part: itself times what came back to it.
function times(back, values) {
  for (let at = 0; at < back.length; at++) back[at] *= values[at];
  return back;
}

// ---- Windows: which places of a picture meet at one place of a kernel, for all windows at once ----

// Along one axis, [first, end) are the windows in which the place `tap` of the kernel lies inside of `side` pixels.
function range(tap, axis, side, windows, step) {
  const shift = tap * (step.dilation?.[axis] ?? 1) - step.padding[axis], stride = step.stride[axis];
  const first = Math.max(0, Math.ceil(-shift / stride));
  return [first, Math.max(first, Math.min(windows, Math.floor((side - 1 - shift) / stride) + 1)), shift];
}

// Call `visit(input, output, count, stride)` for every row of windows that a place of the kernel meets: where the row
// begins in the input's channel and in the output's, how many windows it has, and the input's step between two.
function rows(step, row, column, visit) {
  const [, height, width] = step.before, [, down, across] = step.shape;
  const [top, bottom, y] = range(row, 0, height, down, step);
  const [left, right, x] = range(column, 1, width, across, step);
  const [tall, wide] = step.stride;
  for (let window = top; window < bottom; window++) {
    visit((window * tall + y) * width + left * wide + x, window * across + left, right - left, wide);
  }
}

// Call `visit(weight, input, output, count, stride)` in this way for every weight of a convolution.
function taps(step, visit) {
  const [channels, height, width] = step.before, [filters, down, across] = step.shape;
  const [tall, wide] = step.kernel, own = channels / step.groups, together = filters / step.groups;
  let at = 0;
  for (let filter = 0; filter < filters; filter++) {
    const first = Math.floor(filter / together) * own;
    for (let channel = first; channel < first + own; channel++) {
      const input = channel * height * width, output = filter * down * across;
      for (let row = 0; row < tall; row++) {
        for (let column = 0; column < wide; column++, at++) {
          const weight = step.weight[at];
          rows(step, row, column, (from, to, count, stride) => visit(weight, input + from, output + to, count, stride));
        }
      }
    }
  }
}

// Call `visit(input, output, count, stride)` in this way for every channel and place of a pooling's kernel.
function pools(step, visit) {
  const [channels, height, width] = step.before, [, down, across] = step.shape;
  for (let row = 0; row < step.kernel[0]; row++) {
    for (let column = 0; column < step.kernel[1]; column++) {
      rows(step, row, column, (from, to, count, stride) => {
        for (let channel = 0; channel < channels; channel++) {
          visit(channel * height * width + from, channel * down * across + to, count, stride);
        }
      });
    }
  }
}

// ---- There: called with (step, values before, values to fill, sums in double precision) ----

const FORWARD = {
  dense(step, x, z, sums) {
    for (let unit = 0, at = 0; unit < z.length; unit++) {
      let sum = step.bias.length ? step.bias[unit] : 0;
      for (let from = 0; from < x.length; from++, at++) sum += step.weight[at] * x[from];
      sums[unit] = sum;
    }
    z.set(sums);
  },
  convolution(step, x, z, sums) {
    const positions = size(step.shape.slice(1));
    for (let filter = 0; filter < step.shape[0]; filter++) {
      sums.fill(step.bias.length ? step.bias[filter] : 0, filter * positions, (filter + 1) * positions);
    }
    taps(step, (weight, from, to, count, stride) => {
      for (let end = to + count; to < end; to++, from += stride) sums[to] += weight * x[from];
    });
    z.set(sums);
  },
  average(step, x, z, sums) {
    sums.fill(0);
    pools(step, (from, to, count, stride) => {
      for (let end = to + count; to < end; to++, from += stride) sums[to] += x[from];
    });
    const windows = size(step.kernel);
    for (let at = 0; at < z.length; at++) z[at] = sums[at] /= windows;
  },
  maximum(step, x, z) {
    z.fill(-Infinity);
    pools(step, (from, to, count, stride) => {
      for (let end = to + count; to < end; to++, from += stride) if (x[from] > z[to]) z[to] = x[from];
    });
  },
  relu: pointwise((x) => Math.max(x, 0)),
  sigmoid: pointwise((x) => 1 / (1 + Math.exp(-x))),
  tanh: pointwise(Math.tanh),
  scale(step, x, z) {
    const positions = x.length / step.weight.length;
    for (let at = 0; at < z.length; at++) {
      const channel = Math.floor(at / positions);
      z[at] = x[at] * step.weight[channel] + step.bias[channel];
    }
  },
};

function pointwise(curve) {
  return (step, x, z) => {
    for (let at = 0; at < z.length; at++) z[at] = curve(x[at]);
  };
}

// ---- Back: called with (step, values before, values behind, relevance behind, what to fill, epsilon); each returns the
// relevance before ----

const BACK = {
  dense(step, x, z, relevance, back, epsilon) {
    const share = shares(z, relevance, epsilon);
    back.fill(0);
    for (let unit = 0; unit < z.length; unit++) {
      if (share[unit] === 0) continue;
      for (let from = 0, at = unit * x.length; from < x.length; from++, at++) back[from] += step.weight[at] * share[unit];
    }
    return times(back, x);
  },
  convolution(step, x, z, relevance, back, epsilon) {
    const share = shares(z, relevance, epsilon);
    back.fill(0);
    taps(step, (weight, from, to, count, stride) => {
      for (let end = to + count; to < end; to++, from += stride) back[from] += weight * share[to];
    });
    return times(back, x);
  },
  average(step, x, z, relevance, back, epsilon) {
    const share = shares(z, relevance, epsilon), windows = size(step.kernel);
    back.fill(0);
    pools(step, (from, to, count, stride) => {
      for (let end = to + count; to < end; to++, from += stride) back[from] += share[to] / windows;
    });
    return times(back, x);
  },
  // The relevance of a maximum belongs, in equal parts, to the values that equal it.
  maximum(step, x, z, relevance, back) {
    const winners = new Uint16Array(z.length);
    back.fill(0);
    pools(step, (from, to, count, stride) => {
      for (let end = to + count; to < end; to++, from += stride) winners[to] += x[from] === z[to];
    });
    pools(step, (from, to, count, stride) => {
      for (let end = to + count; to < end; to++, from += stride) {
        if (x[from] === z[to]) back[from] += relevance[to] / winners[to];
      }
    });
    return back;
  },
  relu: passed,
  sigmoid: passed,
  tanh: passed,
  scale: passed,
};

function passed(step, x, z, relevance) {
  return relevance;
}
