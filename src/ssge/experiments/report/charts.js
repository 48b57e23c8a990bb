"use strict";
(() => {
  const specs = dataOf("chart-data");
  const entries = Object.entries(specs).flatMap(([group, list]) => list.map((spec, i) => [document.getElementById(`${group}-${i}`), spec]));
  const axis = (title, colors, more) => ({
    title: { text: title, standoff: 8 }, color: colors.muted, gridcolor: colors.grid, linecolor: colors.muted,
    zeroline: false, automargin: true, fixedrange: true, ...more,
  });

  const draw = (place, spec) => {
    const colors = theme();
    const layout = {
      margin: { l: 8, r: 10, t: 8, b: 8 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: FONT, size: 12, color: colors.ink }, showlegend: false,
      hoverlabel: { bgcolor: colors.page, bordercolor: colors.muted, font: { color: colors.ink } },
    };
    let traces;
    if (spec.kind === "heat") {
      const flat = unpack(spec.values, Uint8Array);
      const rows = Array.from({ length: spec.size }, (_, i) => Array.from(flat.subarray(i * spec.size, (i + 1) * spec.size), (v) => v / 255));
      const shades = dark.matches ? [[0, "#1d2128"], [0.5, "#2f77b0"], [1, "#d6ebff"]] : [[0, "#f4f8fc"], [0.5, "#5b9fd0"], [1, "#08306b"]];
      traces = [{ type: "heatmap", z: rows, zmin: 0, zmax: 1, colorscale: shades, colorbar: { thickness: 12, outlinewidth: 0, tickfont: { color: colors.muted } }, hovertemplate: "columns %{x} and %{y}: %{z:.2f}<extra></extra>" }];
      layout.xaxis = axis("column", colors, { showgrid: false, constrain: "domain" });
      layout.yaxis = axis("column", colors, { showgrid: false, autorange: "reversed", scaleanchor: "x", constrain: "domain" });
    } else {
      const mode = spec.x.length > 20 ? "lines" : "lines+markers";
      traces = [{ type: "scatter", mode, x: spec.x, y: spec.y, line: { color: colors.accent, width: 2 }, hovertemplate: "%{x}: %{y:.4g}<extra></extra>" }];
      layout.xaxis = axis(spec.axes[0], colors, { showgrid: false });
      layout.yaxis = axis(spec.axes[1] + (spec.log ? ", log scale" : ""), colors, { type: spec.log ? "log" : "linear", nticks: 6, ...(spec.log ? { exponentformat: "power" } : {}) });
      if (spec.level !== undefined) layout.shapes = [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: spec.level, y1: spec.level, line: { color: colors.muted, width: 1, dash: "dash" } }];
    }
    Plotly.react(place, traces, layout, { displayModeBar: false, responsive: true });
  };

  const drawAll = () => entries.forEach(([place, spec]) => draw(place, spec));
  drawAll();
  dark.addEventListener("change", drawAll);
})();
