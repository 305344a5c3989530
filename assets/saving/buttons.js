// Buttons that save a chart as a picture: in the browser, which has drawn it already.
//
// Plotly saves its own figures, as its camera button does. Charts of ECharts are drawn as SVG, which is taken
// as it is.

const SCALE = 2; // pixels of a PNG for one of the screen
const SVG = "http://www.w3.org/2000/svg";

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
  if (plot) return savePlot(plot, data.file, format);
  const drawing = place?.querySelector('[data-testid="stEChartsChart"] svg');
  if (!drawing) throw new Error("the chart is still being drawn.");
  const text = drawingText(drawing, data);
  const blob = new Blob([text], { type: "image/svg+xml" });
  download(format === "svg" ? blob : await rastered(blob, drawing), `${data.file}.${format}`);
}

function savePlot(plot, filename, format) {
  const camera = plot._fullLayout._modeBar.buttons.flat().find((button) => button.name === "toImage");
  const settings = plot._context.toImageButtonOptions;
  plot._context.toImageButtonOptions = { format, filename, scale: format === "png" ? SCALE : 1 };
  camera.click(plot);
  plot._context.toImageButtonOptions = settings;
}

function drawingText(drawing, { title, origin, ground }) {
  const { width, height } = drawing.getBoundingClientRect();
  const copy = drawing.cloneNode(true);
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const name = document.createElementNS(SVG, "title");
  name.textContent = title;
  const said = document.createElementNS(SVG, "desc");
  said.textContent = origin;
  const back = document.createElementNS(SVG, "rect");
  for (const [key, value] of Object.entries({ width, height, fill: ground })) back.setAttribute(key, value);
  copy.prepend(name, said, back);
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
