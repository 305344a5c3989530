// What was clicked grows into what it opens, so that the eye follows: a copy of the picture flies to its new place.

const GROW = 420; // ms that it takes
const WAIT = 4000; // ms that the new place is waited for, at most

function growInto(copy, from, host, inside = "") {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches; // then the page only goes to the place
  const { backgroundImage, backgroundSize, backgroundPosition } = copy.style; // of a picture cut out of a sheet
  copy.style.cssText = "position:fixed;z-index:999998;pointer-events:none;image-rendering:pixelated;box-shadow:0 4px 18px rgba(0,0,0,.35)";
  // Its sheet is as large as the picture was; both grow.
  const sheet = backgroundSize.split(" ").map((side) => parseFloat(side));
  const cut = backgroundPosition.split(" ").map((side) => parseFloat(side));
  copy.style.backgroundImage = backgroundImage;
  if (!still) document.body.append(copy);
  const asked = performance.now();
  let begun;
  place(from);
  requestAnimationFrame(step);

  function step(now) {
    const target = find(host, inside);
    if (!target || now - asked < 120) {
      if (now - asked > WAIT) copy.remove();
      else requestAnimationFrame(step);
      return;
    }
    if (begun === undefined) {
      begun = now;
      target.style.scrollMarginBottom = "4rem"; // its caption is to be seen too
      target.scrollIntoView({ behavior: still ? "instant" : "smooth", block: "nearest" });
    }
    if (still) return;
    const share = Math.min(1, (now - begun) / GROW);
    const way = 1 - (1 - share) ** 3;
    const to = target.getBoundingClientRect();
    place({ left: mix("left"), top: mix("top"), width: mix("width"), height: mix("height") });
    if (share < 1) requestAnimationFrame(step);
    else copy.animate([{ opacity: 1 }, { opacity: 0 }], 200).finished.then(() => copy.remove());

    function mix(side) {
      return from[side] + way * (to[side] - from[side]);
    }
  }

  function place({ left, top, width, height }) {
    for (const [side, value] of Object.entries({ left, top, width, height })) copy.style[side] = `${value}px`;
    if (!backgroundImage) return;
    const [wide, high] = [width / from.width, height / from.height];
    copy.style.backgroundSize = `${sheet[0] * wide}px ${sheet[1] * high}px`;
    copy.style.backgroundPosition = `${cut[0] * wide}px ${cut[1] * high}px`;
  }
}

// Parts of pages that the browser draws itself are hidden from the document.
function find(host, inside) {
  if (!inside) return document.querySelector(host);
  for (const part of document.querySelectorAll(`${host} *`)) {
    const found = part.shadowRoot?.querySelector(inside);
    if (found) return found;
  }
  return null;
}
