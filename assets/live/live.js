// A test that is changed by hand, and what follows from it while the hand moves: classes, relevance, neurons and cell.
//
// Where the network is a small chain it runs here (engine.js), and the server, told when the hand rests, checks it.
// Otherwise the server computes: it is told of the newest change as soon as it has answered the one before.

const REST_MS = 300; // without a change before the server is told, where this browser runs the network
const PATIENCE_MS = 5000; // for an answer; then the server is asked again
const NEAR = 1e-4; // of what the engine says, and of the largest number there
const TOOLS = 244; // pixels that brush, size and reset take in a row
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const lives = new WeakMap();
const fetched = new Map(); // numbers by their address

export default function ({ data, parentElement, setStateValue }) {
  if (!lives.has(parentElement)) lives.set(parentElement, new Live(parentElement.querySelector(".live")));
  const live = lives.get(parentElement);
  live.tell = (edits) => setStateValue("edits", edits);
  live.take(data);
  return () => {
    live.close();
    lives.delete(parentElement);
  };
}

async function numbersOf(answer) {
  if (!answer.ok) throw new Error(`${answer.url} answers with ${answer.status}`);
  return new Float32Array(await answer.arrayBuffer());
}

async function numbersAt(address) {
  if (!fetched.has(address)) {
    const coming = fetch(address).then(numbersOf);
    coming.catch(() => fetched.delete(address)); // so that it is asked for again
    fetched.set(address, coming);
    if (fetched.size > 8) fetched.delete(fetched.keys().next().value);
  }
  return fetched.get(address);
}

function unpacked(text) {
  return new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

class Live {
  constructor(root) {
    this.root = root;
    this.find = (name) => root.querySelector(name);
    this.updates = 0; // how often it was shown what follows
    root.onkeydown = (event) => event.stopPropagation(); // elsewhere on the page keys go to another test
  }

  // Take what the server says: of another test everything, of this one its answer.
  async take(data) {
    const fresh = data.test !== this.data?.test;
    this.data = data;
    if (fresh) {
      this.edits = { ...data.edits };
      this.sent = this.edits.stamp = data.edits.stamp ?? 0;
      this.chain = this.fields = undefined;
      this.build();
      await this.load(data).catch((error) => console.warn("The server alone computes, without the picture.", error));
      if (data.test !== this.data.test) return;
      this.change(false);
    }
    if (this.chain && this.data.answer.stamp === this.edits.stamp) this.check();
    this.show(this.chain ? this.computed() : this.answered(this.data.answer));
    if (this.data.answer.stamp >= this.sent) this.busy = false;
    if (!this.chain && this.edits.stamp > this.sent) this.send();
  }

  async load({ fields, weights, program, damping, shape }) {
    const [given, trained] = await Promise.all([fields && numbersAt(fields), program && numbersAt(weights)]);
    if (given) {
      const size = shape.reduce((product, side) => product * side, 1);
      const [original, direction, noise] = [0, 1, 2].map((part) => given.subarray(part * size, (part + 1) * size));
      this.fields = { original, direction, noise };
    }
    if (program) this.chain = new Chain(program, trained, damping);
  }

  close() {
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
  }

  // What the network reads now; of a text nothing, as the server reads it.
  get input() {
    if (this.data.kind === "picture") return changePicture(this.data.shape, this.fields, this.edits);
    return Float32Array.from(this.edits.values ?? this.data.values ?? []);
  }

  // Show what follows from a change in the next frame, and tell the server, at once or when the hand rests.
  change(byHand = true) {
    if (byHand) this.edits.stamp += 1;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (this.data.kind === "picture" && this.fields) this.paintPicture();
      if (this.chain) this.show(this.computed());
    });
    if (!byHand) return;
    clearTimeout(this.timer);
    if (this.chain) this.timer = setTimeout(() => this.send(), REST_MS);
    else this.send();
  }

  send() {
    if (this.busy && performance.now() - this.asked < PATIENCE_MS && !this.chain) return;
    this.busy = true;
    this.asked = performance.now();
    this.sent = this.edits.stamp;
    this.tell({ ...this.edits });
  }

  computed() {
    const { scores, relevance, activations } = this.chain.run(this.input);
    const positions = this.data.kind === "picture" ? this.data.shape[1] * this.data.shape[2] : relevance.length;
    const summed = new Float32Array(positions); // over channels
    relevance.forEach((part, at) => (summed[at % positions] += part));
    return { scores, relevance: summed, activations: this.data.important.map((neuron) => activations[neuron]) };
  }

  answered({ scores, activations, relevance, words }) {
    return { scores, activations, words, relevance: relevance && unpacked(relevance) };
  }

  // Compare what was computed here with the engine's numbers; where they differ, the engine alone is believed.
  check() {
    const own = this.computed(), engine = this.answered(this.data.answer);
    const isNear = (name) =>
      own[name].every((value, at) => Math.abs(value - engine[name][at]) <= NEAR * Math.max(1, strongest(engine[name])));
    this.root.dataset.checked = ["scores", "activations", "relevance"].every(isNear);
    if (this.root.dataset.checked === "true") return;
    console.warn("The network's numbers in this browser differ from the engine's, which are shown.");
    this.chain = undefined;
  }

  // ---- What is drawn ----

  show({ scores, activations, relevance, words }) {
    const { classes, before, kind, shape, colours, neurons } = this.data;
    if (classes.length) {
      const now = softmax(scores);
      drawClasses(this.find("tbody"), classes, softmax(before.scores), now);
      this.of = classes[now.indexOf(Math.max(...now))];
    } else this.showValue(before.scores[0], scores[0]);
    this.moveMarks(before.activations, activations);
    const cell = (active) => neurons.map((neuron, index) => clusterOf(neuron, active[index])).join("-");
    const [was, is] = [cell(before.activations), cell(activations)];
    this.find(".cell").textContent = `Cell ${is}${was === is ? "" : ` (before: ${was})`}`;
    if (kind === "text") this.find(".text").innerHTML = words;
    else if (kind === "table") this.showParts(relevance);
    else this.showHeat(drawHeat(this.find(".heat"), shape[1], shape[2], relevance, colours));
    this.root.dataset.updates = ++this.updates;
  }

  showHeat(limit) {
    const [of, signs] = this.of === undefined ? ["", "red raises, blue lowers"] : [` for ${this.of}`, "red for, blue against"];
    this.find(".scale").textContent = `Relevance${of}, \u00b1${limit.toPrecision(2)}: ${signs}`;
    this.find(".heat").setAttribute("aria-label", this.find(".scale").textContent);
  }

  showParts(relevance) {
    const limit = strongest(relevance);
    this.root.querySelectorAll(".part").forEach((part, at) => {
      const share = relevance[at] / limit, width = `${100 * Math.abs(share)}%`;
      const place = share < 0 ? { right: "100%", left: "auto" } : { left: 0, right: "auto" };
      Object.assign(part.firstChild.style, { width, ...place, background: `rgb(${colourAt(this.data.colours, share)})` });
      part.title = signed(relevance[at], 2);
    });
    const signs = this.of === undefined ? "right raises, left lowers" : "right for, left against";
    this.find(".scale").textContent = `Bars: relevance, ${signs}`;
  }

  showValue(before, now) {
    const body = this.find("tbody"), { is_signed, unit } = this.data.quantity;
    const amount = (value) => `${is_signed ? signed(value, 2) : Number(value.toPrecision(4))} ${unit}`.replace("-", "\u2212");
    if (!body.rows.length) body.insertRow().innerHTML = '<th scope="row">prediction</th><td></td><td></td><td></td>';
    body.rows[0].cells[2].textContent = amount(now);
    body.rows[0].cells[3].textContent = amount(before);
  }

  paintPicture() {
    const canvas = this.find(".picture");
    drawPicture(canvas, this.data.shape, this.input);
    if (canvas.getRootNode().activeElement !== canvas || !canvas.matches(":focus-visible")) return;
    const context = canvas.getContext("2d");
    context.fillStyle = "rgb(11 107 114 / 60%)";
    context.fillRect(this.at.x, this.at.y, 1, 1);
  }

  // ---- What can be changed ----

  build() {
    const { kind, neurons } = this.data;
    this.root.classList.toggle("words", kind === "text");
    this.root.classList.toggle("rows", kind === "table");
    this.find(".of-picture").hidden = this.find(".heat").hidden = kind !== "picture";
    this.find(".of-text").hidden = this.find(".text").hidden = kind !== "text";
    this.find("tbody").replaceChildren();
    this.find(".sliders").replaceChildren();
    this.find(".scale").textContent = "";
    this.of = undefined;
    this.moveMarks = drawNeurons(this.find(".neurons"), neurons);
    if (kind === "picture") this.buildPicture();
    else if (kind === "table") this.data.sliders.forEach((slider, at) => this.buildFeature(slider, at));
    else this.buildText();
  }

  buildText() {
    const field = this.find(".of-text");
    field.value = this.edits.text ?? this.data.text;
    field.oninput = () => {
      this.edits.text = field.value;
      this.change();
    };
  }

  buildFeature({ label, low, high, step }, at) {
    const sliders = this.find(".sliders"), values = () => (this.edits.values ??= [...this.data.values]);
    const value = (this.edits.values ?? this.data.values)[at];
    element("span", sliders, "name", label).title = label;
    const range = Object.assign(element("input", sliders), { type: "range", min: low, max: high, step: "any", value });
    const typed = Object.assign(element("input", sliders), { type: "number", step, value: Number(value.toPrecision(4)) });
    element("i", element("span", sliders, "part"));
    range.setAttribute("aria-label", label);
    typed.setAttribute("aria-label", `${label}, value`);
    range.oninput = () => {
      typed.value = Number(Number(range.value).toPrecision(4));
      values()[at] = Number(range.value);
      this.change();
    };
    typed.oninput = () => {
      if (!Number.isFinite(typed.valueAsNumber)) return;
      range.value = values()[at] = typed.valueAsNumber;
      this.change();
    };
  }

  buildPicture() {
    const { shape, side, name, sliders } = this.data, [, height, width] = shape;
    const canvas = this.find(".picture"), heat = this.find(".heat"), tall = Math.round((side * height) / width);
    Object.assign(canvas, { width, height });
    Object.assign(heat, { width: side, height: tall });
    for (const one of [canvas, heat]) Object.assign(one.style, { width: `${side}px`, height: `${tall}px` });
    canvas.setAttribute("aria-label", `${name}: arrow keys move, space paints`);
    this.find(".change").style.width = `${Math.max(side, TOOLS)}px`;
    this.at = { x: width >> 1, y: height >> 1 }; // where the keyboard paints
    this.painted = new Map((this.edits.painted ?? []).map(([place, ...colour]) => [place, colour]));
    const move = sliders.map((slider) => this.buildSlider(slider));
    this.listen(canvas, width, height);
    this.find(".reset").onclick = () => {
      this.edits = { stamp: this.edits.stamp };
      this.painted.clear();
      move.forEach((follow) => follow());
      this.change();
    };
  }

  buildSlider({ name, label, low, high, step }) {
    const parent = this.find(".sliders");
    element("span", parent, "", label);
    const range = Object.assign(element("input", parent), { type: "range", min: low, max: high, step });
    const shown = element("output", parent);
    range.setAttribute("aria-label", label);
    const follow = () => {
      range.value = this.edits[name] ?? 0;
      shown.textContent = Number(Number(range.value).toFixed(3)).toString().replace("-", "\u2212");
    };
    range.oninput = () => {
      this.edits[name] = Number(range.value);
      follow();
      this.change();
    };
    follow();
    return follow;
  }

  listen(canvas, width, height) {
    const within = (place, side) => Math.min(side - 1, Math.max(0, place));
    const move = (event) => {
      const box = canvas.getBoundingClientRect();
      this.at.x = within(Math.floor(((event.clientX - box.left) / box.width) * width), width);
      this.at.y = within(Math.floor(((event.clientY - box.top) / box.height) * height), height);
      this.paint(width, height);
    };
    canvas.onpointerdown = (event) => {
      canvas.setPointerCapture(event.pointerId);
      move(event);
    };
    canvas.onpointermove = (event) => event.buttons && move(event);
    canvas.onfocus = canvas.onblur = () => this.fields && this.paintPicture();
    canvas.onkeydown = (event) => {
      const step = STEPS[event.key];
      if (step) {
        this.at.x = within(this.at.x + step[0], width);
        this.at.y = within(this.at.y + step[1], height);
        this.paintPicture();
      } else if (event.key === " ") this.paint(width, height);
      else return;
      event.preventDefault();
    };
  }

  paint(width, height) {
    const colour = this.find(".colour").value.match(/\w\w/g).map((part) => parseInt(part, 16));
    const reach = this.find(".size").value - 1, { x, y } = this.at;
    for (let row = Math.max(0, y - reach); row <= Math.min(height - 1, y + reach); row++)
      for (let column = Math.max(0, x - reach); column <= Math.min(width - 1, x + reach); column++)
        this.painted.set(row * width + column, colour);
    this.edits.painted = [...this.painted].map(([place, colour]) => [place, ...colour]);
    this.change();
  }
}
