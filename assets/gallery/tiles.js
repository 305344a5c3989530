// Tests as buttons: pictures cut out of one sheet, or words. A click tells the server which test was chosen.

const drawn = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".gallery");
  const content = JSON.stringify([data.tiles, data.sheet]);
  if (drawn.get(root) !== content) {
    const focused = parentElement.activeElement?.dataset?.test;
    draw(root, data);
    root.querySelector(`[data-test="${focused}"]`)?.focus();
    drawn.set(root, content);
  }
  for (const button of root.children) {
    button.setAttribute("aria-pressed", Number(button.dataset.test) === data.selected);
    button.onclick = () => setTriggerValue("chosen", Number(button.dataset.test));
  }
}

function draw(root, { tiles, sheet, label }) {
  root.setAttribute("aria-label", label);
  root.classList.toggle("texts", !sheet);
  root.replaceChildren(...tiles.map((tile) => drawTile(tile, sheet)));
}

function drawTile({ test, caption, spoken, places, words }, sheet) {
  const button = create("button", "");
  button.type = "button";
  button.dataset.test = test;
  button.title = `${spoken}. Select it on all pages.`;
  const text = create("span", "caption", caption);
  text.append(create("span", "mark", "\u2713 selected"));
  if (sheet) {
    const pictures = create("span", "pictures");
    pictures.append(...places.map((place, index) => drawPicture(place, index, sheet)));
    button.append(pictures, text);
  } else {
    const body = create("span", "words");
    for (const [word, mark] of words) {
      body.append(mark ? create(mark === "for" ? "strong" : "em", mark, word) : word, " ");
    }
    button.append(text, body);
  }
  return button;
}

function drawPicture(place, index, { address, columns, rows, width, height }) {
  const picture = create("span", index ? "picture heatmap" : "picture");
  const [row, column] = [Math.floor(place / columns), place % columns];
  Object.assign(picture.style, {
    width: `${width}px`,
    height: `${height}px`,
    backgroundImage: `url(${address})`,
    backgroundSize: `${columns * width}px ${rows * height}px`,
    backgroundPosition: `${-column * width}px ${-row * height}px`,
  });
  return picture;
}

function create(tag, name, text = "") {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = text;
  return element;
}
