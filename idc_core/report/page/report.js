// Unpacks the charts' library from the page itself, and draws each chart in the colours of the reader's theme.
(async () => {
  const packed = document.getElementById("plotly").textContent.trim();
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const library = document.createElement("script");
  library.textContent = await new Response(unpacked).text();
  document.head.append(library);

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const draw = async () => {
    for (const chart of document.querySelectorAll(".chart")) {
      const name = `${chart.id}-${dark.matches ? "dark" : "light"}`;
      const { data, layout } = JSON.parse(document.getElementById(name).textContent);
      chart.style.height = `${chart.dataset.height}px`;
      chart.hidden = false;
      await Plotly.react(chart, data, layout, { displayModeBar: false, responsive: true });
    }
    document.documentElement.dataset.drawn = dark.matches ? "dark" : "light";
  };
  dark.addEventListener("change", draw);
  await draw();
})();
