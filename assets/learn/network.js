// The network of the Learn page: drawn as lines and circles whose weights and inputs can be dragged.
//
// While a hand drags, values and relevance are recomputed here, so that nothing lags. When it lets go, the state
// goes to the server, which computes the same with the engine and shows its numbers below the picture.

const SVG = "http://www.w3.org/2000/svg";
const EPSILON = 1e-6;
const COLUMNS = [120, 325, 530, 735];
const ROWS = { 2: [115, 285], 3: [90, 200, 310] };
const HEIGHT = { weights: 360, relevance: 410 }; // below the neurons the relevance of each layer is summed
const RADIUS = 25;
const STEP = 0.05; // of an arrow key and of dragging
const PIXELS = 90; // of dragging that change a number by 1
const REST_MS = 200; // without a key before the state is sent

const views = new WeakMap();

export default function (component) {
  const { data, parentElement, setStateValue } = component;
  if (!views.has(parentElement)) {
    views.set(parentElement, new View(parentElement.querySelector(".network")));
  }
  const view = views.get(parentElement);
  view.send = (state) => setStateValue("network", state);
  view.take(data);
  return () => {
    view.close();
    views.delete(parentElement);
  };
}

function forward(weights, inputs) {
  const values = [inputs];
  const sums = [];
  weights.forEach((weight, depth) => {
    const from = values[depth];
    const z = weight[0].map((_, j) => from.reduce((sum, x, i) => sum + x * weight[i][j], 0));
    sums.push(z);
    values.push(depth === weights.length - 1 ? z : z.map((x) => Math.max(x, 0)));
  });
  return { values, sums };
}

function explain(weights, inputs, target) {
  const { values, sums } = forward(weights, inputs);
  const scores = values[weights.length];
  const decided = scores.indexOf(Math.max(...scores));
  const chosen = target ?? decided;
  const relevance = [scores.map((score, j) => (j === chosen ? score : 0))];
  const flows = [];
  for (let depth = weights.length - 1; depth >= 0; depth--) {
    const share = relevance[0].map((r, j) => {
      const z = sums[depth][j];
      return r / (z + (z < 0 ? -EPSILON : EPSILON));
    });
    flows.unshift(weights[depth].map((row, i) => row.map((w, j) => values[depth][i] * w * share[j])));
    relevance.unshift(flows[0].map((row) => row.reduce((sum, r) => sum + r, 0)));
  }
  return { values, decided, chosen, relevance, flows };
}

// A number as text, with a true minus sign and without a negative zero.
function number(value, plus = false) {
  const text = Math.abs(value).toFixed(2);
  if (text === "0.00") return text;
  return (value < 0 ? "\u2212" : plus ? "+" : "") + text;
}

function element(name, parent, attributes = {}) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}

class View {
  constructor(root) {
    this.svg = root.querySelector("svg");
    this.readout = root.querySelector(".readout");
    this.sent = undefined; // stamp of the last state that went to the server
    this.busy = false; // a hand is dragging, or a key was pressed a moment ago
    this.timer = undefined;
  }

  // Take what the server says, unless it answers an older state than the one on screen.
  take(data) {
    this.data = data;
    if (this.sent === undefined || (!this.busy && data.stamp === this.sent)) {
      this.sent = data.stamp;
      this.weights = data.weights.map((matrix) => matrix.map((row) => [...row]));
      this.inputs = [...data.inputs];
      this.edge = [...data.edge];
    }
    if (!this.lines) this.build();
    this.draw();
  }

  close() {
    clearTimeout(this.timer);
  }

  place(layer, unit) {
    return [COLUMNS[layer], ROWS[this.data.names[layer].length][unit]];
  }

  build() {
    this.lines = [];
    this.weights.forEach((matrix, l) => matrix.forEach((row, i) => row.forEach((_, j) => this.buildLine(l, i, j))));
    this.nodes = this.data.names.map((names, l) => names.map((name, i) => this.buildNode(l, i, name)));
    this.labels = this.lines.map(({ at: [x, y] }) => {
      element("rect", this.svg, { class: "plate", x: x - 21, y: y - 9, width: 42, height: 18, rx: 4 });
      return element("text", this.svg, { class: "label", x, y });
    });
    this.sums = this.data.layers.map((layer, l) => {
      element("text", this.svg, { class: "layer", x: COLUMNS[l], y: 30 }).textContent = layer;
      return element("text", this.svg, { class: "sum", x: COLUMNS[l], y: 395, "data-sum": l });
    });
  }

  buildLine(l, i, j) {
    const [x1, y1] = this.place(l, i);
    const [x2, y2] = this.place(l + 1, j);
    const group = element("g", this.svg, { "data-line": `${l}-${i}-${j}` });
    const ends = { x1, y1, x2, y2 };
    element("line", group, { class: "hit", ...ends });
    const line = element("line", group, { class: "line", ...ends });
    // Where the numbers of lines that cross are furthest apart.
    const rows = (layer) => ROWS[this.data.names[layer].length];
    const gaps = [rows(l)[1] - rows(l)[0], rows(l + 1)[1] - rows(l + 1)[0]];
    const part = (gaps[0] * rows(l).length) / (gaps[0] * rows(l).length + gaps[1]);
    const at = [x1 + part * (x2 - x1), y1 + part * (y2 - y1)];
    this.slide(group, [-this.data.most, this.data.most], {
      get: () => this.weights[l][i][j],
      set: (value) => (this.weights[l][i][j] = value),
      choose: () => (this.edge = [l, i, j]),
    });
    this.lines.push({ l, i, j, group, line, at });
  }

  buildNode(l, i, name) {
    const [x, y] = this.place(l, i);
    const group = element("g", this.svg, { "data-node": `${l}-${i}` });
    let shape, ink;
    if (l === 0) {
      const box = { x: x - RADIUS, y: y - RADIUS, width: 2 * RADIUS, height: 2 * RADIUS };
      shape = element("rect", group, { class: "shape", ...box });
      ink = element("rect", group, { class: "ink", ...box });
      this.slide(group, [0, 1], {
        get: () => this.inputs[i],
        set: (value) => (this.inputs[i] = value),
        choose: () => {},
      });
    } else {
      shape = element("circle", group, { class: "shape", cx: x, cy: y, r: RADIUS });
      ink = element("circle", group, { class: "tint", cx: x, cy: y, r: RADIUS });
    }
    const side = l === 0 ? -1 : l === this.weights.length ? 1 : 0;
    const [nameX, nameY] = side ? [x + side * (RADIUS + 34), y - 12] : [x, y - RADIUS - 8];
    const label = element("text", group, { class: "name", x: nameX, y: nameY });
    label.textContent = name;
    const [valueX, valueY] = l === 0 ? [nameX, y + 8] : [x, y];
    const value = element("text", group, { class: "value", x: valueX, y: valueY });
    const [relevanceX, relevanceY] = side ? [nameX, y + (side > 0 ? 10 : 30)] : [x, y + RADIUS + 18];
    const relevance = element("text", group, { class: "value", x: relevanceX, y: relevanceY });
    return { group, shape, ink, label, value, relevance };
  }

  // Make a group of shapes a slider: to drag, and for the arrow keys.
  slide(group, [low, high], { get, set, choose }) {
    const limits = { "aria-valuemin": low, "aria-valuemax": high, "aria-orientation": "vertical" };
    for (const [key, value] of Object.entries({ role: "slider", tabindex: 0, ...limits })) {
      group.setAttribute(key, value);
    }
    const change = (value) => {
      set(Math.min(high, Math.max(low, Math.round(value / STEP) / (1 / STEP))));
      this.draw();
    };
    let from; // where the drag began, and the number then
    group.onpointerdown = (event) => {
      if (event.button !== 0) return;
      event.preventDefault();
      group.setPointerCapture(event.pointerId);
      group.focus({ focusVisible: false });
      from = { y: event.clientY, value: get() };
      this.busy = true;
      choose();
      this.draw();
    };
    group.onpointermove = (event) => {
      if (from) change(from.value + (from.y - event.clientY) / PIXELS);
    };
    group.onpointerup = group.onpointercancel = () => {
      if (from) this.tell();
      from = undefined;
    };
    const far = (high - low) / 4;
    const keys = {
      ArrowUp: () => get() + STEP,
      ArrowRight: () => get() + STEP,
      ArrowDown: () => get() - STEP,
      ArrowLeft: () => get() - STEP,
      PageUp: () => get() + far,
      PageDown: () => get() - far,
      Home: () => low,
      End: () => high,
      Enter: get,
      " ": get,
    };
    group.onkeydown = (event) => {
      if (!(event.key in keys)) return;
      event.preventDefault();
      this.busy = true;
      choose();
      change(keys[event.key]());
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.tell(), REST_MS);
    };
  }

  tell() {
    clearTimeout(this.timer);
    this.busy = false;
    this.sent = (this.sent ?? 0) + 1;
    this.send({ weights: this.weights, inputs: this.inputs, edge: this.edge, stamp: this.sent });
  }

  draw() {
    const found = explain(this.weights, this.inputs, this.data.target);
    const relevance = this.data.shows === "relevance";
    this.svg.setAttribute("viewBox", `0 0 860 ${HEIGHT[this.data.shows]}`);
    const shown = relevance ? found.flows : this.weights;
    const most = relevance ? Math.max(0.01, ...shown.flat(2).map(Math.abs)) : this.data.most;
    this.lines.forEach((line, index) => this.drawLine(line, this.labels[index], found, shown, most, relevance));
    this.nodes.forEach((nodes, l) => nodes.forEach((node, i) => this.drawNode(node, l, i, found, relevance)));
    this.sums.forEach((text, l) => {
      const sum = found.relevance[l].reduce((total, r) => total + r, 0);
      text.textContent = relevance ? `sum${l ? "" : " of R"}: ${number(sum)}` : "";
    });
    this.readout.textContent = this.sentence(found, relevance);
  }

  drawLine({ l, i, j, group, line }, label, found, shown, most, relevance) {
    const value = shown[l][i][j];
    const none = Math.abs(value) < 0.005;
    const { towards, against } = this.data.colours;
    const colour = !relevance || none ? "var(--st-text-color)" : value > 0 ? towards : against;
    line.setAttribute("stroke", colour);
    line.setAttribute("stroke-opacity", none ? 0.25 : relevance ? 0.9 : 0.55);
    line.setAttribute("stroke-width", 1 + (8 * Math.abs(value)) / most);
    line.setAttribute("stroke-dasharray", !none && value < 0 ? "7 5" : "none");
    label.textContent = number(value, relevance);
    label.setAttribute("fill-opacity", none ? 0.75 : 1);
    const [from, to] = [this.data.names[l][i], this.data.names[l + 1][j]];
    const weight = number(this.weights[l][i][j]);
    const chosen = [l, i, j].every((part, index) => part === this.edge[index]);
    group.classList.toggle("chosen", chosen);
    group.setAttribute("aria-label", `weight from ${from} to ${to}`);
    group.setAttribute("aria-valuenow", this.weights[l][i][j].toFixed(2));
    group.setAttribute("aria-valuetext", `${weight}, relevance ${number(found.flows[l][i][j])}`);
  }

  drawNode({ group, shape, ink, label, value, relevance }, l, i, found, relevant) {
    const amount = found.values[l][i];
    const share = found.relevance[l][i];
    value.textContent = number(amount);
    relevance.textContent = relevant ? `R ${number(share, true)}` : "";
    const last = l === this.weights.length;
    if (l === 0) {
      ink.setAttribute("fill-opacity", amount);
      group.setAttribute("aria-label", `ink at the ${this.data.names[0][i]}`);
      group.setAttribute("aria-valuenow", amount.toFixed(2));
      group.setAttribute("aria-valuetext", `${number(amount)}, relevance ${number(share)}`);
      return;
    }
    shape.classList.toggle("silent", !last && amount <= 0);
    const size = Math.max(0.01, ...found.relevance.flat().map(Math.abs));
    const { towards, against } = this.data.colours;
    ink.setAttribute("fill", share < 0 ? against : towards);
    ink.setAttribute("fill-opacity", relevant ? (0.35 * Math.abs(share)) / size : 0);
    const decided = last && i === found.decided;
    label.classList.toggle("decided", decided);
    shape.setAttribute("stroke-width", decided ? 4 : 1.5);
    label.textContent = this.data.names[l][i] + (decided ? " \u2713" : "");
  }

  sentence(found, relevance) {
    const [l, i, j] = this.edge;
    const [from, to] = [this.data.names[l][i], this.data.names[l + 1][j]];
    const [x, w] = [found.values[l][i], this.weights[l][i][j]];
    const carried = `${from} \u2192 ${to}: ${number(x)} \u00d7 ${number(w)} = ${number(x * w)}`;
    return relevance ? `${carried}, relevance ${number(found.flows[l][i][j], true)}` : carried;
  }
}
