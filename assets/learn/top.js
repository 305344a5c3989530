// The next chapter begins at its top, and with the focus on its heading; one opened by its address stays as it is.

let seen = 0; // turns to another chapter

function begin(place) {
  if (!place.isConnected) return;
  const main = document.querySelector('[data-testid="stMain"]');
  const headings = main.querySelectorAll("h2");
  // The tab of the chapter before may still hold its own, and the next one not be shown yet: neither takes the focus.
  if (headings.length !== 1 || !headings[0].checkVisibility()) {
    requestAnimationFrame(() => begin(place));
    return;
  }
  headings[0].tabIndex = -1;
  headings[0].focus({ preventScroll: true });
  main.scrollTo(0, 0);
}

export default function ({ data, parentElement }) {
  if (data.turns <= seen) return;
  seen = data.turns;
  begin(parentElement);
}
