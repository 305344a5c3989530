// Cards of neurons, drawn by the server as SVG: a click tells what was clicked, a button saves a card as a picture.

const SCALE = 2; // pixels of a PNG for one of the screen
const MARGIN = 12;
const drawn = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".cards");
  const status = parentElement.querySelector(".status");
  const content = JSON.stringify([data.cards, data.saved, data.told]);
  if (drawn.get(root) !== content) {
    root.replaceChildren(...data.cards.map((card) => draw(card, data, status)));
    drawn.set(root, content);
  }
  for (const tile of root.querySelectorAll("rect[data-test]")) {
    tile.classList.toggle("selected", Number(tile.dataset.test) === data.selected);
  }
  const choose = (event) => {
    const part = event.target.closest?.("[data-test], [data-neuron], [data-clusters], [data-story]");
    if (!part || (event.key && event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    const [kind, value] = Object.entries(part.dataset)[0];
    setTriggerValue("chosen", { kind, value: Number(value) });
  };
  root.onclick = choose;
  root.onkeydown = choose;
}

function draw(card, data, status) {
  const box = document.createElement("div");
  box.className = "card";
  box.setAttribute("role", "listitem");
  box.innerHTML = card.picture;
  if (!data.saved) return box;
  const row = document.createElement("div");
  row.className = "row";
  if (data.told) {
    const add = button("Add to story", `the card of neuron ${card.neuron}`);
    add.dataset.story = card.neuron;
    row.append(add);
  }
  const save = button("PNG", `save the card of neuron ${card.neuron} as a picture`);
  save.onclick = async () => {
    status.textContent = "";
    try {
      download(await rastered(box.querySelector("svg"), data), `${data.saved.replace("{}", card.neuron)}.png`);
    } catch (error) {
      status.textContent = `Could not be saved: ${error.message}`;
    }
  };
  row.append(save);
  box.append(row);
  return box;
}

function button(text, does) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.title = `${text}: ${does}`;
  made.setAttribute("aria-label", made.title);
  return made;
}

async function rastered(drawing, { ground, origin }) {
  const [width, height] = ["width", "height"].map((side) => Number(drawing.getAttribute(side)) + 2 * MARGIN);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(drawing))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = SCALE * width;
  canvas.height = SCALE * height;
  const pen = canvas.getContext("2d");
  pen.scale(SCALE, SCALE);
  pen.fillStyle = ground;
  pen.fillRect(0, 0, width, height);
  pen.drawImage(image, MARGIN, MARGIN);
  pen.fillStyle = getComputedStyle(drawing).color;
  pen.font = `10px ${getComputedStyle(drawing).fontFamily}`;
  pen.fillText(origin, MARGIN, height - 8, width - 2 * MARGIN);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
