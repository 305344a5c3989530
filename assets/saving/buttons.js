// Buttons that save a chart as a picture: in the browser, which has drawn it already.
//
// Plotly makes the pictures of its own figures, as its camera button does. Charts of ECharts are drawn as SVG, which is
// taken as it is. Every file says in itself what it is of: its title, network, tests, layer, m and date.

const SCALE = 2; // pixels of a PNG for one of the screen
const SVG = "http://www.w3.org/2000/svg";
const HEAD = 33; // bytes of a PNG's signature and its first chunk
const MADE = 60_000; // ms that plotly has for a picture

export default function ({ data, parentElement }) {
  parentElement.querySelector(".saving").setAttribute("aria-label", `Save the chart ${data.title}`);
  const status = parentElement.querySelector("p");
  for (const button of parentElement.querySelectorAll("button")) {
    const format = button.dataset.format;
    button.setAttribute("aria-label", `${format.toUpperCase()}: save the chart ${data.title}`);
    button.title = `Save the chart as ${format.toUpperCase()}`;
    button.onclick = async () => {
      status.textContent = "";
      try {
        await save(data, format);
      } catch (error) {
        status.textContent = `Could not be saved: ${error.message}`;
      }
    };
  }
}

async function save(data, format) {
  const place = document.querySelector(`.st-key-${CSS.escape(data.chart)}`);
  const plot = place?.querySelector(".js-plotly-plot");
  if (plot) return download(await described(await pictureOfPlot(plot, data.file, format), data, format), `${data.file}.${format}`);
  const drawing = place?.querySelector('[data-testid="stEChartsChart"] svg');
  if (!drawing) throw new Error("the chart is still being drawn.");
  const text = drawingText(drawing, data);
  const blob = new Blob([text], { type: "image/svg+xml" });
  download(format === "svg" ? blob : await described(await rastered(blob, drawing), data, format), `${data.file}.${format}`);
}

// Plotly is not to be called from here, but hands its picture to a link of its own that it clicks.
function pictureOfPlot(plot, filename, format) {
  const camera = plot._fullLayout._modeBar.buttons.flat().find((button) => button.name === "toImage");
  const settings = plot._context.toImageButtonOptions;
  const { click } = HTMLAnchorElement.prototype;
  return new Promise((resolve, reject) => {
    const restore = () => {
      clearTimeout(late);
      HTMLAnchorElement.prototype.click = click;
    };
    const late = setTimeout(() => {
      restore();
      reject(new Error("the picture was not made in time."));
    }, MADE);
    HTMLAnchorElement.prototype.click = function () {
      if (!this.download.startsWith(filename)) return click.call(this);
      restore();
      fetch(this.href).then((answer) => answer.blob()).then(resolve, reject); // before plotly takes the address back
    };
    plot._context.toImageButtonOptions = { format, filename, scale: format === "png" ? SCALE : 1 };
    camera.click(plot);
    plot._context.toImageButtonOptions = settings;
  });
}

async function described(blob, { title, origin }, format) {
  if (format === "png") return withText(new Uint8Array(await blob.arrayBuffer()), `${title} · ${origin}`);
  const drawing = new DOMParser().parseFromString(await blob.text(), "image/svg+xml").documentElement;
  drawing.prepend(...saying(title, origin));
  return new Blob([new XMLSerializer().serializeToString(drawing)], { type: "image/svg+xml" });
}

function saying(title, origin) {
  const [name, said] = ["title", "desc"].map((tag) => document.createElementNS(SVG, tag));
  name.textContent = title;
  said.textContent = origin;
  return [name, said];
}

// A PNG with a text chunk behind its first one, as the pictures have that the server makes.
function withText(png, text) {
  const chunk = new TextEncoder().encode(`iTXtDescription\0\0\0\0\0${text}`);
  const framed = new Uint8Array(chunk.length + 8);
  const view = new DataView(framed.buffer);
  view.setUint32(0, chunk.length - 4);
  framed.set(chunk, 4);
  view.setUint32(chunk.length + 4, checksum(chunk));
  return new Blob([png.subarray(0, HEAD), framed, png.subarray(HEAD)], { type: "image/png" });
}

// CRC-32, as in the PNG specification, annex D.
function checksum(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

function drawingText(drawing, { title, origin, ground }) {
  const { width, height } = drawing.getBoundingClientRect();
  const copy = drawing.cloneNode(true);
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const back = document.createElementNS(SVG, "rect");
  for (const [key, value] of Object.entries({ width, height, fill: ground })) back.setAttribute(key, value);
  copy.prepend(...saying(title, origin), back);
  const chart = drawing.closest('[data-testid="stEChartsChart"]');
  const pictures = chart.querySelector("canvas.tiles");
  if (pictures) copy.append(pictureOf(pictures, width, height));
  const frame = frameOf(chart);
  if (frame) copy.append(frame);
  return new XMLSerializer().serializeToString(copy);
}

// So do the pictures of a grid's tiles.
function pictureOf(canvas, width, height) {
  const picture = document.createElementNS(SVG, "image");
  for (const [key, value] of Object.entries({ href: canvas.toDataURL(), width, height })) picture.setAttribute(key, value);
  return picture;
}

// The selected tile's frame lies above the drawing.
function frameOf(chart) {
  const style = getComputedStyle(chart, "::after");
  if (style.content === "none") return null;
  const [left, top, width, height, line] = ["left", "top", "width", "height", "borderTopWidth"].map((name) => parseFloat(style[name]));
  const place = { x: left + line / 2, y: top + line / 2, width: width - line, height: height - line };
  const frame = document.createElementNS(SVG, "rect");
  const look = { fill: "none", stroke: style.borderTopColor, "stroke-width": line };
  for (const [key, value] of Object.entries({ ...place, ...look })) frame.setAttribute(key, value);
  return frame;
}

async function rastered(blob, drawing) {
  const { width, height } = drawing.getBoundingClientRect();
  const address = URL.createObjectURL(blob);
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = SCALE * width;
    canvas.height = SCALE * height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
