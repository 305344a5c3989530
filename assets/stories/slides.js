// The slides of a story in their order: shown by a click, moved by dragging or by two buttons, deleted.

export default function ({ data, parentElement, setTriggerValue }) {
  const list = parentElement.querySelector(".slides");
  const status = parentElement.querySelector("p");
  const rows = data.slides.map((sentence, at) => row(sentence, at));
  list.replaceChildren(...rows);
  list.setAttribute("aria-label", "Slides");
  // What was moved keeps the focus.
  const wanted = parentElement.wanted;
  delete parentElement.wanted;
  if (wanted && rows[wanted.at]) {
    const button = rows[wanted.at].querySelector(`.${wanted.name}`);
    (button.disabled ? rows[wanted.at].querySelector(".show") : button).focus();
  }

  function deed(name, at, to, focus) {
    parentElement.wanted = focus;
    setTriggerValue("deed", { name, at, to });
  }

  function move(at, to, name) {
    if (to < 0 || to >= data.slides.length || to === at) return;
    status.textContent = `Slide ${at + 1} is now slide ${to + 1}.`;
    deed("move", at, to, { at: to, name });
  }

  function row(sentence, at) {
    const item = document.createElement("li");
    if (at === data.shown) item.setAttribute("aria-current", "true");
    const grip = document.createElement("span");
    grip.className = "grip";
    grip.textContent = "⠿";
    grip.setAttribute("aria-hidden", "true");
    grip.title = "Drag to move";
    item.append(grip);
    if (!data.fixed) item.draggable = true;
    else grip.remove();
    const show = add("show", `${at + 1}. ${sentence}`, `Show slide ${at + 1}: ${sentence}`, () =>
      deed("show", at, at, { at, name: "show" }),
    );
    if (data.fixed) return item;
    add("up", "↑", `Move slide ${at + 1} up`, () => move(at, at - 1, "up")).disabled = at === 0;
    add("down", "↓", `Move slide ${at + 1} down`, () => move(at, at + 1, "down")).disabled = at === data.slides.length - 1;
    add("delete", "×", `Delete slide ${at + 1}`, () => deed("delete", at, at, { at: Math.max(at - 1, 0), name: "show" }));

    item.ondragstart = (event) => {
      event.dataTransfer.effectAllowed = "move";
      event.dataTransfer.setData("text/plain", String(at));
    };
    item.ondragover = (event) => {
      event.preventDefault();
      item.classList.add("over");
    };
    item.ondragleave = () => item.classList.remove("over");
    item.ondrop = (event) => {
      event.preventDefault();
      item.classList.remove("over");
      const from = Number.parseInt(event.dataTransfer.getData("text/plain"), 10);
      if (Number.isInteger(from) && from >= 0 && from < data.slides.length) move(from, at, "show");
    };
    return item;

    function add(name, text, label, act) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = name;
      button.textContent = text;
      button.setAttribute("aria-label", label);
      if (name !== "show") button.title = label;
      button.onclick = act;
      item.append(button);
      return button;
    }
  }
}
