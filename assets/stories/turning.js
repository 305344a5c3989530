// Arrow keys and the space bar turn slides, as the keys that clickers send do, which are the buttons' own.

const BUTTONS = { ArrowRight: "PageDown", ArrowDown: "PageDown", " ": "PageDown", ArrowLeft: "PageUp", ArrowUp: "PageUp" };
// What uses these keys itself.
const OWN = 'input, textarea, select, button, summary, [role="slider"], [role="tab"], [role="radio"], [contenteditable="true"]';

export default function ({ parentElement }) {
  function turn(event) {
    // What a closing dialog hides has the focus until the browser paints again, and uses no key.
    const used = event.composedPath().some((one) => one.matches?.(OWN) && one.checkVisibility());
    if (!(event.key in BUTTONS) || used || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!document.querySelector(".st-key-slide")) return; // an opened page scrolls
    event.preventDefault();
    document.querySelector(`.st-key-present-${BUTTONS[event.key]} button`)?.click();
  }
  parentElement.listening?.abort();
  const listening = (parentElement.listening = new AbortController());
  document.addEventListener("keydown", turn, { signal: listening.signal });
  return () => parentElement.isConnected || listening.abort(); // see search.js
}
