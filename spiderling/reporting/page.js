// Draws every figure[data-chart] with the Vega-Lite spec in the element of that id; anew when light turns dark.
// Bundled with Vega-Embed (vegaEmbed) by page.py.
const dark = matchMedia("(prefers-color-scheme: dark)");

function theme() {
  const ink = dark.matches ? "#e8ebee" : "#1c2024";
  const line = dark.matches ? "#3a424a" : "#d5dae0";
  const words = { labelColor: ink, titleColor: ink, labelFontSize: 12, titleFontSize: 13 };
  // told apart by the three kinds of colour blindness too, after Okabe & Ito
  const colours = dark.matches
    ? ["#ffb454", "#56b4e9", "#e58fc0", "#4fd1a5", "#f0e442", "#c9a0ff", "#ff7f6e", "#b5bec6"]
    : ["#b8500a", "#0072b2", "#a8407a", "#00785a", "#8a7400", "#5b3fb5", "#c62828", "#5b6670"];
  return {
    background: "transparent",
    font: "system-ui, sans-serif",
    view: { stroke: line },
    axis: { ...words, gridColor: line, domainColor: line, tickColor: line },
    legend: { ...words, labelLimit: 400 },
    text: { color: ink },
    range: { category: colours },
  };
}

// As many columns of a legend as the chart has room for, at some 7 pixels a letter.
function fitLegends(part, width) {
  for (const value of Object.values(part)) {
    if (!value || typeof value !== "object") continue;
    if (value.legend?.orient) {
      const longest = Math.max(...value.scale.domain.map((name) => name.length));
      value.legend.columns = Math.max(1, Math.floor((width - 70) / (28 + 7 * longest)));
    }
    fitLegends(value, width);
  }
}

async function draw() {
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    const spec = JSON.parse(document.getElementById(figure.dataset.chart).textContent);
    const place = figure.querySelector(".chart");
    fitLegends(spec, place.clientWidth);
    await vegaEmbed(place, { ...spec, width: "container", autosize: { type: "fit", contains: "padding" } }, {
      config: theme(),
      actions: false,
      renderer: spec.datasets ? "canvas" : "svg", // thousands of points
      tooltip: { theme: dark.matches ? "dark" : "light" },
    });
    place.setAttribute("aria-label", figure.dataset.label);
  }
  document.body.dataset.drawn = "yes";
}

dark.addEventListener("change", draw);
matchMedia("(max-width: 50rem)").addEventListener("change", draw); // other legends
draw();
