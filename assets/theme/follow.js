// Streamlit recolours its own parts as soon as the theme changes; charts are drawn for a ground and wait for a run.

const EVERY_MS = 300;

let looking;

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
