// The picture of the test whose mark is under the pointer. The sheet of pictures is fetched with the first of them.

const LATER_MS = 60; // plotly notes what is under the pointer a little after it has moved
const AWAY = 18; // pixels between the pointer and the picture, on the side where plotly's label is not

export default function ({ data, parentElement }) {
  const card = parentElement.querySelector(".hovered");
  const { address, columns, rows, width, height } = data.sheet;
  const places = new Map(data.tests.map((test, place) => [test, place]));
  let waiting;

  function move(event) {
    clearTimeout(waiting);
    const plot = event.target.closest?.(`.st-key-${CSS.escape(data.plot)} .js-plotly-plot`);
    if (!plot) hide();
    else waiting = setTimeout(() => show(plot._hoverdata?.[0]?.customdata, event), LATER_MS);
  }

  function show(test, { clientX, clientY }) {
    const place = places.get(test);
    card.hidden = place === undefined;
    if (card.hidden) return;
    const left = clientX - width - AWAY;
    Object.assign(card.style, {
      left: `${left < 0 ? clientX + AWAY : left}px`,
      top: `${Math.max(0, clientY - height - AWAY)}px`,
      width: `${width}px`,
      height: `${height}px`,
      backgroundImage: `url(${address})`,
      backgroundSize: `${columns * width}px ${rows * height}px`,
      backgroundPosition: `${-(place % columns) * width}px ${-Math.floor(place / columns) * height}px`,
    });
  }

  // Whatever takes the mark from under the pointer takes the picture away: no move tells of it.
  function hide() {
    clearTimeout(waiting);
    card.hidden = true;
  }

  hide();
  // With new data this function runs again, but what it returned runs only at the end: older listeners must go.
  parentElement.listening?.abort();
  const listening = (parentElement.listening = new AbortController());
  const { signal } = listening;
  document.addEventListener("mousemove", move, { signal });
  document.documentElement.addEventListener("mouseleave", hide, { signal });
  for (const kind of ["scroll", "keydown", "mousedown"]) document.addEventListener(kind, hide, { signal, capture: true });
  window.addEventListener("blur", hide, { signal });
  return () => {
    hide();
    listening.abort();
  };
}
