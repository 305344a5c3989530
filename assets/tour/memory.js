// What the browser does for the guided tour beside showing it: remember how it ended, and move the focus.

const MEMORY = "idc-studio-tour"; // also in offer.js

let seen = 0; // moves in the tour; a page that was opened by its address keeps the focus where it is
let focused; // what the focus was put on

export default function ({ data }) {
  if (data.ended) {
    try {
      localStorage.setItem(MEMORY, data.ended);
    } catch {
      // a browser that keeps nothing offers the tour again
    }
  }
  const panel = document.querySelector(".st-key-tour-panel");
  if (panel) {
    panel.setAttribute("role", "region");
    panel.setAttribute("aria-label", "Guided tour");
    panel.tabIndex = -1;
  }
  // A page that is drawn twice may replace what had the focus.
  const lost = focused && !focused.isConnected && document.activeElement === document.body;
  if (data.moves > seen || lost) {
    seen = data.moves;
    focused = panel ?? document.querySelector('[data-testid="stMain"] h1');
    focused.tabIndex = -1;
    focused.focus();
  }
}
