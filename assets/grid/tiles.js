// The tiles of a grid of combinations that ECharts draws: clicks on them, pictures in them, tests that fall into them.
//
// Streamlit tells of what is selected in a chart only 150 ms later, as more may follow; a click on a tile is all there
// is. Pictures lie on a canvas above the drawing: ECharts would blur them, and draw all anew for each test that falls.

const SMALLEST = 30; // pixels of a tile with a picture
const FRAME = 3; // pixels of a tile's colour around its picture
const FALL = 650; // ms that a test falls
const PLAY = [5000, 14000]; // ms that all of them take, at least and at most
const EACH = 28; // ms between two tests, where that is possible
const LINE = 13; // pixels from one word of a tile to the next
const GLOW = 400; // ms that a tile glows after a test has fallen into it
const SHARP = 3; // pixels of the screen for one of a picture from which on its pixels are shown

export default function ({ data, parentElement, setTriggerValue }) {
  // With new data this function runs again, but what it returned runs only at the end: what is older must go.
  parentElement.ending?.abort();
  const ending = (parentElement.ending = new AbortController());
  const layer = new Layer(data, parentElement, ending.signal);
  document.addEventListener("click", (event) => layer.click(event, setTriggerValue), { signal: ending.signal });
  return () => parentElement.ending.abort();
}

class Layer {
  constructor(data, root, signal) {
    Object.assign(this, data);
    this.order = new Map((this.filled?.at ?? []).map((tile, place) => [tile, place]));
    this.button = root.querySelector("button");
    this.counter = root.querySelector("output");
    root.querySelector(".play").hidden = !this.falls;
    this.button.onclick = () => (this.begun ? this.end() : this.begin());
    this.end();
    this.watch = new ResizeObserver(() => this.fit());
    this.attaching = setInterval(() => this.attach(), 60);
    signal.addEventListener("abort", () => this.leave());
    if (this.sheet) {
      this.image = new Image();
      this.image.onload = () => this.draw();
      this.image.src = this.sheet.address;
    }
    this.attach();
  }

  leave() {
    clearInterval(this.attaching);
    cancelAnimationFrame(this.frame);
    this.watch.disconnect();
    this.canvas?.remove();
  }

  // The chart may come later than this, and anew.
  attach() {
    const chart = document.querySelector(`.st-key-${CSS.escape(this.grid)} [data-testid="stEChartsChart"]`);
    if (!chart?.querySelector("svg") || chart === this.chart) return;
    this.chart = chart;
    this.canvas?.remove();
    for (const older of chart.querySelectorAll("canvas.tiles")) older.remove();
    this.canvas = document.createElement("canvas");
    this.canvas.className = "tiles";
    this.canvas.style.cssText = "position:absolute;inset:0;width:100%;height:100%;pointer-events:none";
    chart.append(this.canvas);
    this.watch.disconnect();
    this.watch.observe(chart);
    this.fit();
  }

  // Where the page is narrower than the drawing, it is made less high: tiles stay squares.
  fit() {
    const { left, right, top, bottom } = this.margins;
    const side = Math.min(this.side, (this.chart.clientWidth - left - right) / this.columns);
    const height = Math.round(top + bottom + this.rows * side);
    const outermost = this.chart.closest(`.st-key-${CSS.escape(this.grid)}`);
    for (let part = this.chart; outermost.contains(part); part = part.parentElement) part.style.height = `${height}px`;
    outermost.style.flexBasis = `${height}px`;
    this.pictured = this.has_pictures && side >= SMALLEST;
    this.draw();
  }

  // Where the tiles lie in the chart.
  get inner() {
    const { left, right, top, bottom } = this.margins;
    const [width, height] = [this.chart.clientWidth - left - right, this.chart.clientHeight - top - bottom];
    return { left, top, width: width / this.columns, height: height / this.rows };
  }

  box(tile) {
    const { left, top, width, height } = this.inner;
    return { x: left + (tile % this.columns) * width, y: top + Math.floor(tile / this.columns) * height, width, height };
  }

  draw(now = performance.now()) {
    if (!this.canvas?.isConnected) return;
    const scale = Math.max(devicePixelRatio, 1);
    const [width, height] = [this.chart.clientWidth, this.chart.clientHeight].map((side) => Math.round(side * scale));
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    const pen = this.canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.scale = scale;
    if (this.begun) this.drawFalling(pen, now);
    else if (this.pictured) for (const tile of this.order.keys()) this.drawTile(pen, tile);
  }

  drawTile(pen, tile, mark) {
    const place = this.order.get(tile);
    const box = inset(this.box(tile), 1);
    const fill = this.filled.fill[place];
    pen.fillStyle = fill;
    rounded(pen, box, 3);
    if (this.pictured) this.drawContent(pen, place, inset(box, FRAME), fill);
    mark ??= this.filled.mark[place];
    if (mark) this.drawMark(pen, box, mark, fill);
  }

  drawContent(pen, place, box, fill) {
    if (this.image) {
      if (!this.image.complete || !this.image.naturalWidth) return;
      this.drawPicture(pen, place, box);
      return;
    }
    pen.fillStyle = this.colours.ground;
    pen.fillRect(box.x, box.y, box.width, box.height);
    pen.save();
    pen.beginPath();
    pen.rect(box.x, box.y, box.width, box.height);
    pen.clip();
    pen.fillStyle = this.colours.ink;
    pen.font = `11px ${this.font}`;
    pen.textBaseline = "top";
    const whole = this.words[place].slice(0, Math.floor((box.height - 2) / LINE));
    whole.forEach((word, row) => pen.fillText(shortened(pen, word, box.width - 3), box.x + 2, box.y + 2 + LINE * row));
    pen.restore();
  }

  drawPicture(pen, place, box) {
    const { columns, rows } = this.sheet;
    const [wide, high] = [this.image.naturalWidth / columns, this.image.naturalHeight / rows];
    const times = Math.min(box.width / wide, box.height / high);
    const [width, height] = [wide * times, high * times];
    pen.imageSmoothingEnabled = times * this.scale < SHARP && !Number.isInteger(times * this.scale);
    pen.imageSmoothingQuality = "high";
    const [x, y] = [box.x + (box.width - width) / 2, box.y + (box.height - height) / 2];
    pen.drawImage(this.image, (place % columns) * wide, Math.floor(place / columns) * high, wide, high, x, y, width, height);
  }

  // In the corner of a picture, in the middle of a tile without one.
  drawMark(pen, box, mark, fill) {
    pen.font = `11px ${this.font}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    let [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    if (this.pictured) {
      const width = Math.max(14, pen.measureText(mark).width + 6);
      const corner = { x: box.x + box.width - width, y: box.y + box.height - 14, width, height: 14 };
      pen.fillStyle = fill;
      rounded(pen, corner, 3);
      [x, y] = [corner.x + width / 2, corner.y + 7.5];
    }
    pen.fillStyle = this.colours.onFill;
    pen.fillText(mark, x, y);
    pen.textAlign = "start";
  }

  begin() {
    const { tile } = this.falls;
    const [least, most] = PLAY;
    this.begun = performance.now();
    this.step = Math.min(most, Math.max(least, EACH * tile.length)) / tile.length;
    this.counts = new Map();
    this.landed = 0;
    this.glowing = new Map();
    this.button.textContent = "Stop";
    this.button.setAttribute("aria-pressed", "true");
    this.chart.scrollIntoView({ behavior: "smooth", block: "nearest" });
    this.run();
  }

  end() {
    cancelAnimationFrame(this.frame);
    this.begun = undefined;
    this.button.textContent = "Play";
    this.button.setAttribute("aria-pressed", "false");
    if (this.chart) this.draw();
  }

  run() {
    this.frame = requestAnimationFrame((now) => {
      const { tile, number, cells } = this.falls;
      const fallen = Math.min(tile.length, Math.max(0, Math.floor((now - this.begun - FALL) / this.step)));
      for (; this.landed < fallen; this.landed++) {
        const into = tile[this.landed];
        if (into < 0) continue;
        this.glowing.set(into, now);
        this.counts.set(into, (this.counts.get(into) ?? 0) + 1);
      }
      const last = this.landed - 1;
      this.counter.textContent = `${(number[last] ?? 0).toLocaleString("en")} tests, ${(cells[last] ?? 0).toLocaleString("en")} cells`;
      this.draw(now);
      if (this.landed === tile.length && now - this.begun > FALL + this.step * tile.length + GLOW) this.end();
      else this.run();
    });
  }

  drawFalling(pen, now) {
    const { tile } = this.falls;
    for (const at of this.order.keys()) {
      if (!this.counts.has(at)) this.drawEmpty(pen, at);
      else this.drawLanded(pen, at, now - this.glowing.get(at));
    }
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const newest = Math.min(tile.length - 1, Math.floor((now - this.begun) / this.step));
    for (let fall = newest; fall >= this.landed; fall--) {
      if (tile[fall] >= 0) this.drawFall(pen, tile[fall], (now - this.begun - fall * this.step) / FALL);
    }
  }

  drawEmpty(pen, tile) {
    const box = inset(this.box(tile), 0.5);
    pen.fillStyle = this.colours.ground;
    pen.fillRect(box.x, box.y, box.width, box.height);
    pen.strokeStyle = this.colours.line;
    pen.lineWidth = 1;
    pen.strokeRect(box.x, box.y, box.width, box.height);
  }

  drawLanded(pen, tile, since) {
    const exact = this.filled.counted && this.falls.number.length === this.falls.number.at(-1);
    const whole = this.filled.mark[this.order.get(tile)];
    this.drawTile(pen, tile, exact && /^\d+$/.test(whole) ? String(this.counts.get(tile)) : whole);
    if (since > GLOW) return;
    const box = inset(this.box(tile), 1);
    pen.globalAlpha = 0.75 * (1 - since / GLOW);
    pen.fillStyle = this.colours.accent;
    rounded(pen, box, 3);
    pen.globalAlpha = 1;
  }

  drawFall(pen, tile, share) {
    const box = this.box(tile);
    const small = Math.min(box.width, box.height) * (this.pictured && this.image ? 0.8 : 0.45);
    const y = (box.y + box.height) * share * share - small; // as things fall
    const at = { x: box.x + (box.width - small) / 2, y: Math.max(0, y + (small - box.height) / 2), width: small, height: small };
    pen.globalAlpha = Math.min(1, 3 * share);
    if (this.pictured && this.image) this.drawPicture(pen, this.order.get(tile), at);
    else {
      pen.fillStyle = this.colours.accent;
      rounded(pen, at, 3);
    }
    pen.globalAlpha = 1;
  }

  click(event, tell) {
    const chart = event.target.closest?.(`.st-key-${CSS.escape(this.grid)} [data-testid="stEChartsChart"]`);
    if (!chart || !this.clickable || event.button) return;
    const { left, top, width, height } = this.inner;
    const outer = chart.getBoundingClientRect();
    const column = Math.floor((event.clientX - outer.left - left) / width);
    const row = Math.floor((event.clientY - outer.top - top) / height);
    if (column < 0 || column >= this.columns || row < 0 || row >= this.rows) return;
    const tile = row * this.columns + column;
    tell("tile", tile);
    if (this.pictured && this.image && this.order.has(tile)) this.grow(tile, outer);
  }

  // The tile's picture grows into the same test among those of the cell, which the server draws meanwhile.
  grow(tile, outer) {
    const place = this.order.get(tile);
    const box = inset(this.box(tile), FRAME);
    const copy = document.createElement("canvas");
    Object.assign(copy, { width: 168, height: 168 });
    this.drawPicture(copy.getContext("2d"), place, { x: 0, y: 0, width: 168, height: 168 });
    growInto(copy, new DOMRect(outer.left + box.x, outer.top + box.y, box.width, box.height), ".st-key-cell-tests", `[data-test="${this.tests[place]}"] .picture`);
  }
}

// A word that is too long for its tile, with what says so in place of its end.
function shortened(pen, word, width) {
  if (pen.measureText(word).width <= width) return word;
  let letters = word.length;
  while (letters > 1 && pen.measureText(`${word.slice(0, letters)}…`).width > width) letters -= 1;
  return `${word.slice(0, letters)}…`;
}

function inset({ x, y, width, height }, by) {
  return { x: x + by, y: y + by, width: width - 2 * by, height: height - 2 * by };
}

function rounded(pen, { x, y, width, height }, radius) {
  pen.beginPath();
  pen.roundRect(x, y, width, height, radius);
  pen.fill();
}
