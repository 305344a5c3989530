// Tests as buttons: pictures cut out of one sheet, or words. A click tells the server which test was chosen.

const drawn = new WeakMap();
const watched = new WeakSet();

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".gallery");
  const content = JSON.stringify([data.tiles, data.sheet]);
  if (drawn.get(root) !== content) {
    const focused = parentElement.activeElement?.dataset?.test;
    draw(root, data);
    root.querySelector(`[data-test="${focused}"]`)?.focus();
    drawn.set(root, content);
    balance(root);
  }
  if (!watched.has(root)) {
    watched.add(root);
    new ResizeObserver(() => balance(root)).observe(root.parentElement ?? parentElement);
  }
  for (const button of root.children) {
    button.setAttribute("aria-pressed", Number(button.dataset.test) === data.selected);
    button.onclick = () => {
      const picture = data.grows && button.querySelector(".picture");
      if (picture) growInto(picture.cloneNode(), picture.getBoundingClientRect(), data.grows);
      setTriggerValue("chosen", Number(button.dataset.test));
    };
  }
}

// A last picture alone in its row looks lost: then all rows are made about as long.
function balance(root) {
  root.style.maxWidth = "";
  const tiles = [...root.children];
  const fitting = tiles.filter((tile) => tile.offsetTop === tiles[0].offsetTop).length;
  if (root.classList.contains("texts") || fitting < 3 || tiles.length % fitting !== 1) return;
  const last = tiles[Math.ceil(tiles.length / Math.ceil(tiles.length / fitting)) - 1];
  root.style.maxWidth = `${last.offsetLeft + last.offsetWidth - tiles[0].offsetLeft + 1}px`;
}

function draw(root, { tiles, sheet, label }) {
  root.setAttribute("aria-label", label);
  root.classList.toggle("texts", !sheet);
  root.replaceChildren(...tiles.map((tile) => drawTile(tile, sheet)));
}

function drawTile({ test, caption, spoken, places, words, glue }, sheet) {
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
    words.forEach(([word, mark], place) => {
      body.append(place ? glue : "", mark ? create(mark === "for" ? "strong" : "em", mark, word) : word);
    });
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
