// Plays the story that the page holds: the charts' library is unpacked from the page itself.
(async () => {
  const story = JSON.parse(document.getElementById("story").textContent);
  const [main, sentence, chart, place, previous, next] =
    ["main", "#sentence", "#chart", "#place", "#previous", "#next"].map((one) => document.querySelector(one));
  const packed = document.getElementById("plotly").textContent.trim();
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const library = document.createElement("script");
  library.textContent = await new Response(unpacked).text();
  document.head.append(library);

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const last = story.slides.length - 1;
  const at = () => Math.min(Math.max((parseInt(location.hash.slice(1), 10) || 1) - 1, 0), Math.max(last, 0));

  async function draw() {
    const now = at();
    const slide = story.slides[now] ?? { sentence: story.title, setup: "", drawings: {} };
    const drawing = slide.drawings[dark.matches ? "dark" : "light"];
    main.hidden = false;
    main.className = drawing ? "" : "alone";
    document.title = `${now + 1} of ${last + 1}: ${story.title}`;
    sentence.textContent = slide.sentence;
    place.textContent = [`${now + 1} of ${last + 1}`, slide.setup].filter(Boolean).join(" · ");
    previous.disabled = now === 0;
    next.disabled = now >= last;
    Plotly.purge(chart);
    if (drawing) await Plotly.newPlot(chart, drawing.data, drawing.layout, { displayModeBar: false, responsive: true });
    document.documentElement.dataset.drawn = `${now + 1}-${dark.matches ? "dark" : "light"}`;
  }

  const turn = (step) => {
    const to = at() + step;
    if (to >= 0 && to <= last) location.hash = to + 1;
  };
  const steps = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Home" || event.key === "End") location.hash = event.key === "Home" ? 1 : last + 1;
    else if (event.key in steps && !(event.key === " " && event.target.closest("button"))) turn(steps[event.key]);
    else return;
    event.preventDefault();
  });
  previous.onclick = () => turn(-1);
  next.onclick = () => turn(1);
  addEventListener("hashchange", draw);
  dark.addEventListener("change", draw);
  await draw();
})();
