// Clicks on a grid of combinations that ECharts draws. Streamlit tells of what is selected in a chart only 150 ms
// later, as more may follow; a click on a tile is all there is.

export default function ({ data, parentElement, setTriggerValue }) {
  const place = `.st-key-${CSS.escape(data.grid)} [data-testid="stEChartsChart"]`;
  function click(event) {
    const drawing = event.target.closest?.(place)?.querySelector("svg");
    if (!drawing || event.button) return;
    const box = drawing.getBoundingClientRect();
    const { left, right, top, bottom } = data.margins;
    const column = (data.columns * (event.clientX - box.left - left)) / (box.width - left - right);
    const row = (data.rows * (event.clientY - box.top - top)) / (box.height - top - bottom);
    if (column < 0 || column >= data.columns || row < 0 || row >= data.rows) return;
    setTriggerValue("tile", Math.floor(row) * data.columns + Math.floor(column));
  }
  // With new data this function runs again, but what it returned runs only at the end: older listeners must go.
  parentElement.listening?.abort();
  const listening = (parentElement.listening = new AbortController());
  document.addEventListener("click", click, { signal: listening.signal });
  return () => listening.abort();
}
