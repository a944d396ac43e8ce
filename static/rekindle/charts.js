// Draws every [data-chart] from its JSON. Colours are CSS tokens, looked up here so that a change of theme is one redraw.
(() => {
  const EVERY = 10000;
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const colour = (token) => { probe.style.color = `var(${token})`; return getComputedStyle(probe).color; };
  const figures = new Map(), tags = new Map();
  const coarse = matchMedia("(pointer: coarse)").matches;

  // Plotly draws times as they are written: write them in the zone somebody chose.
  const shown = (iso) => {
    const at = new Date(iso);
    return document.documentElement.dataset.zone === "utc" ? at.toISOString().slice(0, 19) : new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
  };
  const meant = (text) => new Date(document.documentElement.dataset.zone === "utc" ? `${text.replace(" ", "T")}Z` : text.replace(" ", "T")).toISOString();
  const times = (values) => (typeof values?.[0] === "string" ? values.map(shown) : values);
  const placed = (shape) => ({ ...shape, ...(shape.xref === "paper" ? {} : Object.fromEntries(["x", "x0", "x1"].filter((k) => shape[k]).map((k) => [k, shown(shape[k])]))) });

  const day = 86400000;
  const stops = [{ dtickrange: [null, day - 1], value: "%H:%M" }, { dtickrange: [day, null], value: "%-d %b" }];
  const trace = (given) => {
    const c = colour(given.meta || "--ink-2");
    return { ...given, x: times(given.x), marker: { ...given.marker, color: c, line: { width: 0 } }, line: { width: 1.6, ...given.line, color: c } };
  };
  const layout = (given, bare) => {
    const axis = { gridcolor: colour("--line-2"), zerolinecolor: colour("--line"), linecolor: colour("--line"), ticks: "" };
    return {
      ...given,
      xaxis: { tickformatstops: stops, hoverformat: "%-d %b %H:%M", nticks: 7, ...given.xaxis, ...axis, showgrid: false, fixedrange: coarse },
      yaxis: { ...given.yaxis, ...axis, zeroline: false, fixedrange: true, ...(bare ? { showgrid: false, showticklabels: false } : {}) },
      shapes: (given.shapes || []).map((s) => ({ ...placed(s), line: { ...s.line, color: colour(s.name || "--ink-3") } })),
      annotations: (given.annotations || []).map((a) => ({ ...(a.yref === "paper" ? { bgcolor: colour("--card") } : {}), ...placed(a), font: { size: 10, color: colour(a.name || "--ink-2") } })),
      font: { color: colour("--ink-2"), size: 11, family: getComputedStyle(document.body).fontFamily },
      hoverlabel: { bgcolor: colour("--card"), bordercolor: colour("--line"), font: { color: colour("--ink") } },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 44, r: 16, t: 8, b: 26, ...given.margin }, autosize: true, dragmode: coarse ? false : "zoom", uirevision: "one",
    };
  };
  const note = (place, text) => {
    const line = place.querySelector(".chart-note") || place.parentElement.querySelector(".chart-note");
    if (line) { line.textContent = text; line.hidden = !text; }
  };
  const empty = (figure) => !figure.data.some((t) => (t.y || []).some(Boolean));
  const draw = (place) => {
    const figure = figures.get(place);
    if (!figure) return;
    if (!place.dataset.drawn) { // Plotly wants its place empty; the note moves beside it
      const line = place.querySelector(".chart-note");
      if (line) place.after(line);
      place.dataset.drawn = "yes";
    }
    const bare = empty(figure); // an axis of nothing would only stand behind the words
    note(place, bare ? "Nothing in this time." : "");
    Plotly.react(place, figure.data.map(trace), layout(figure.layout, bare), { displayModeBar: false, responsive: true, doubleClick: false, showTips: false }).then(() => {
      if (place.dataset.brush) return;
      place.dataset.brush = "yes";
      place.on("plotly_relayout", (change) => {
        if (!change["xaxis.range[0]"]) return;
        const address = new URL(location.href);
        ["range", "before"].forEach((name) => address.searchParams.delete(name));
        address.searchParams.set("from", meant(change["xaxis.range[0]"]).slice(0, 19));
        address.searchParams.set("to", meant(change["xaxis.range[1]"]).slice(0, 19));
        location.assign(address);
      });
    });
  };
  const load = async (place) => {
    const headers = { Accept: "application/json", "HX-Request": "true" };
    if (tags.has(place)) headers["If-None-Match"] = tags.get(place);
    try {
      const answer = await fetch(place.dataset.chart, { headers, redirect: "error" });
      if (answer.status === 304) return;
      if (!answer.ok) { if (!figures.has(place)) note(place, "The figures cannot be had now; trying again."); return; }
      tags.set(place, answer.headers.get("ETag"));
      figures.set(place, await answer.json());
      draw(place);
    } catch { if (!figures.has(place)) note(place, "The figures cannot be had now; trying again."); /* else the last drawing stays */ }
  };

  const places = [...document.querySelectorAll("[data-chart]")];
  let loaded = Date.now();
  places.forEach(load);
  document.addEventListener("rekindle:tick", () => {
    if (Date.now() - loaded < EVERY) return;
    loaded = Date.now();
    places.forEach(load);
  });
  for (const change of ["rekindle:theme", "rekindle:zone"]) document.addEventListener(change, () => places.forEach(draw));
})();
