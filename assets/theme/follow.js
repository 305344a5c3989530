// Streamlit recolours its own parts as soon as the theme changes; charts are drawn for a ground and wait for a run.
// It folds the sidebar away on a telephone only: in a narrow window, too, it takes the room of what is looked at.

const EVERY_MS = 300;

const NARROW = window.matchMedia("(max-width: 999px)");

let looking;

NARROW.addEventListener("change", fold);
fold();

function fold() {
  if (NARROW.matches) document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click();
}

export default function ({ data, setTriggerValue }) {
  clearInterval(looking);
  let asked = false; // once for what the page was drawn with
  looking = setInterval(() => {
    const dark = isDark();
    if (asked || dark === data.dark) return;
    asked = true;
    setTriggerValue("ground", dark ? "dark" : "light");
  }, EVERY_MS);
  return () => clearInterval(looking);
}

function isDark() {
  const ground = getComputedStyle(document.querySelector('[data-testid="stApp"]')).backgroundColor;
  const [red, green, blue] = ground.match(/[\d.]+/g).map(Number);
  return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
}
