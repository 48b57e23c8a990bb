"use strict";
(() => {
  const data = dataOf("map-data");
  const $ = (id) => document.getElementById(id);
  const plot = $("plot");
  const x = unpack(data.x, Float32Array), y = unpack(data.y, Float32Array);
  const neighbors = unpack(data.neighbors, Int32Array), cosines = unpack(data.cosines, Int16Array);
  const colorings = data.colors.map((entry) => ({
    ...entry,
    codes: entry.codes && unpack(entry.codes, Int16Array),
    numbers: entry.numbers && unpack(entry.numbers, Float32Array),
    hidden: new Set(),
  }));
  const NO_CLASS = -1;

  // Few points are drawn as vectors, many by WebGL, or as vectors where the browser has no WebGL.
  const MANY = 2500;
  const webgl = (() => { try { return Boolean(document.createElement("canvas").getContext("webgl")); } catch { return false; } })();
  const type = data.n > MANY && webgl ? "scattergl" : "scatter";
  const size = (data.n < 600 ? 9 : data.n < 3000 ? 6.5 : data.n < 12000 ? 4.5 : 3) * (plot.clientWidth < 500 ? 0.75 : 1);

  const state = { color: 0, node: null, chosen: null };
  let order = [];  // the node behind each point that is drawn

  // ---- names: text from files is only ever set as text

  const title = (i) => (data.name !== null && data.columns[data.name][i]) || data.ids[i];
  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const facts = (i) => [["id", data.ids[i]], ...Object.entries(data.columns).filter(([name]) => name !== data.name).map(([name, values]) => [name, values[i]])].filter(([, value]) => value !== "");

  // ---- colors

  const lighter = (hex) => {  // dark colors would be lost on a dark page
    const parts = [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
    const luminance = 0.3 * parts[0] + 0.59 * parts[1] + 0.11 * parts[2];
    const step = Math.max(0, Math.min(0.6, (130 - luminance) / 160));
    return "#" + parts.map((part) => Math.round(part + (255 - part) * step).toString(16).padStart(2, "0")).join("");
  };
  const paint = (hex) => (dark.matches ? lighter(hex) : hex);

  const marker = () => {
    const colors = theme(), column = colorings[state.color];
    const common = { size, opacity: 0.85, line: { width: 0 } };
    if (!column) return { ...common, color: colors.accent };
    if (column.numbers) return { ...common, color: order.map((i) => column.numbers[i]), colorscale: SHADES, cmin: column.low, cmax: column.high, showscale: false };
    const shades = column.classes.map(([, hex]) => paint(hex));
    return { ...common, color: order.map((i) => (column.codes[i] < 0 ? colors.faint : shades[column.codes[i]])) };
  };

  // ---- drawing

  const shownNodes = () => {
    const column = colorings[state.color];
    const all = Array.from({ length: data.n }, (_, i) => i);
    return column && column.codes && column.hidden.size ? all.filter((i) => !column.hidden.has(column.codes[i])) : all;
  };
  const near = (i) => Array.from(neighbors.subarray(i * data.k, (i + 1) * data.k));

  const overlay = () => {
    const colors = theme(), i = state.node;
    const others = i === null ? [] : near(i);
    const lines = { x: [], y: [] };
    for (const j of others) { lines.x.push(x[i], x[j], null); lines.y.push(y[i], y[j], null); }
    const rings = i === null ? [] : [i, ...others];
    return [  // of the type of the points: WebGL is drawn above all vectors
      { type, mode: "lines", ...lines, line: { color: colors.ink, width: 1.2 }, opacity: 0.7, hoverinfo: "skip" },
      { type, mode: "markers", x: rings.map((j) => x[j]), y: rings.map((j) => y[j]), hoverinfo: "skip",
        marker: { symbol: "circle-open", size: rings.map((j) => (j === i ? size + 9 : size + 4)), color: colors.ink, line: { width: rings.map((j) => (j === i ? 3 : 1.6)) } } },
    ];
  };

  const layout = () => ({
    margin: { l: 0, r: 0, t: 0, b: 0 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false, hovermode: "closest", hoverdistance: 12, dragmode: lassoing() ? "lasso" : "pan", uirevision: "kept",
    xaxis: { visible: false, range: plot.layout ? plot.layout.xaxis.range.slice() : home().x },
    yaxis: { visible: false, scaleanchor: "x", range: plot.layout ? plot.layout.yaxis.range.slice() : home().y },
    font: { family: FONT, color: theme().ink },
  });
  const config = { displayModeBar: false, responsive: true, scrollZoom: true, doubleClick: false };

  const draw = () => {
    order = shownNodes();
    const kept = state.chosen && new Set(state.chosen);
    const points = {
      type, mode: "markers", x: order.map((i) => x[i]), y: order.map((i) => y[i]), marker: marker(), hoverinfo: "none",
      selectedpoints: kept ? order.flatMap((i, at) => (kept.has(i) ? [at] : [])) : null,
      selected: { marker: { opacity: 1 } }, unselected: { marker: { opacity: 0.12 } },
    };
    return Plotly.react(plot, [points, ...overlay()], layout(), config);
  };

  const home = () => {
    const range = (values) => {
      let low = Infinity, high = -Infinity;
      for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
      const pad = 0.04 * (high - low) || 1;
      return [low - pad, high + pad];
    };
    return { x: range(x), y: range(y) };
  };
  const look = (horizontal, vertical) => Plotly.relayout(plot, { "xaxis.range": horizontal, "yaxis.range": vertical });
  const zoomed = ([low, high], factor) => { const middle = (low + high) / 2, half = (factor * (high - low)) / 2; return [middle - half, middle + half]; };
  const moved = ([low, high], share) => { const step = share * (high - low); return [low + step, high + step]; };
  const ranges = () => [plot.layout.xaxis.range, plot.layout.yaxis.range];
  const zoom = (factor) => look(...ranges().map((range) => zoomed(range, factor)));
  const whole = () => look(home().x, home().y);
  const bringIntoView = (i) => {
    const [h, v] = ranges();
    if (x[i] >= h[0] && x[i] <= h[1] && y[i] >= v[0] && y[i] <= v[1]) return;
    look(moved(h, (x[i] - (h[0] + h[1]) / 2) / (h[1] - h[0])), moved(v, (y[i] - (v[0] + v[1]) / 2) / (v[1] - v[0])));
  };

  // ---- one node and its neighbors

  const select = (i) => {
    state.node = i;
    const panel = $("node");
    panel.replaceChildren();
    if (i === null) {
      panel.append(element("p", "Click a node, or find one by name: its nearest neighbors appear here and are joined to it on the map.", "note"));
    } else {
      panel.append(element("h3", title(i)));
      const list = element("dl");
      for (const [name, value] of facts(i)) list.append(element("dt", name), element("dd", value));
      panel.append(list, element("p", "Nearest neighbors, by cosine:", "note"));
      const items = element("ol");
      near(i).forEach((j, rank) => {
        const button = element("button");
        button.type = "button";
        button.append(element("span", (cosines[i * data.k + rank] / 1e4).toFixed(2), "cosine"), element("span", title(j), "word"));
        button.addEventListener("click", () => { select(j); bringIntoView(j); $("node").querySelector("li button")?.focus(); });
        const item = element("li");
        item.append(button);
        items.append(item);
      });
      panel.append(items);
    }
    const [lines, rings] = overlay();
    Plotly.restyle(plot, { x: [lines.x, rings.x], y: [lines.y, rings.y], "marker.size": [undefined, rings.marker.size], "marker.line.width": [undefined, rings.marker.line.width] }, [1, 2]);
  };

  // ---- classes

  const showClasses = () => {
    const column = colorings[state.color];
    $("classes").hidden = !column;
    if (!column) return;
    $("classes-title").textContent = column.name;
    const list = $("class-list"), scale = Boolean(column.numbers);
    list.replaceChildren();
    $("scale").hidden = !scale;
    $("all").parentElement.hidden = scale;
    if (scale) {
      $("scale").querySelector(".ramp").style.background = `linear-gradient(to right, ${VIRIDIS.join(", ")})`;
      const written = (value) => value.toLocaleString("en", { maximumSignificantDigits: 4 });
      $("low").textContent = `up to ${written(column.low)}`;
      $("high").textContent = `${written(column.high)} and more`;
      return;
    }
    const absent = column.codes.reduce((count, code) => count + (code < 0), 0);
    const entries = column.classes.map(([name, hex, count], code) => [code, name, paint(hex), count]);
    if (absent) entries.push([NO_CLASS, "no value", theme().faint, absent]);
    for (const [code, name, color, count] of entries) {
      const label = element("label"), box = element("input"), dot = element("span", undefined, "dot");
      box.type = "checkbox";
      box.checked = !column.hidden.has(code);
      box.addEventListener("change", () => { box.checked ? column.hidden.delete(code) : column.hidden.add(code); refresh(); });
      dot.style.background = color;
      label.append(box, dot, element("span", name, "word"), element("span", count.toLocaleString("en"), "count"));
      list.append(label);
    }
  };
  const setAll = (visible) => {
    const column = colorings[state.color];
    column.hidden = new Set(visible ? [] : [...column.classes.keys(), NO_CLASS]);
    showClasses();
    refresh();
  };

  // ---- a choice of nodes: by lasso, or all that are shown

  const tellChoice = () => {
    const count = state.chosen ? state.chosen.length : order.length;
    $("chosen").textContent = `${count.toLocaleString("en")} nodes ${state.chosen ? "in the lasso" : "shown"}.`;
    $("clear").hidden = !state.chosen && state.node === null;
  };
  const clear = () => {
    state.chosen = null;
    Plotly.relayout(plot, { selections: [] });
    select(null);
    refresh();
  };
  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
  const download = () => {
    const names = Object.keys(data.columns);
    const lines = (state.chosen ?? order).map((i) => [data.ids[i], ...names.map((name) => data.columns[name][i])].map(quoted).join(","));
    const blob = new Blob([["id", ...names].map(quoted).join(",") + "\n" + lines.join("\n") + "\n"], { type: "text/csv" });
    const link = element("a");
    link.href = URL.createObjectURL(blob);
    link.download = "nodes.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const refresh = () => draw().then(tellChoice);

  // ---- search

  const find = $("find"), hits = $("hits");
  const written = data.ids.map((id, i) => [id, ...Object.values(data.columns).map((values) => values[i])].join("\n").toLowerCase());
  let found = [], at = -1;
  const search = () => {
    const wanted = find.value.trim().toLowerCase();
    const ranked = [[], [], []];
    if (wanted) {
      for (let i = 0; i < data.n && ranked[0].length < 10; i += 1) {
        const words = written[i].split("\n");
        const rank = words.some((word) => word === wanted) ? 0 : words.some((word) => word.startsWith(wanted)) ? 1 : written[i].includes(wanted) ? 2 : 3;
        if (rank < 3 && ranked[rank].length < 10) ranked[rank].push(i);
      }
    }
    found = ranked.flat().slice(0, 10);
    at = found.length ? 0 : -1;
    hits.replaceChildren();
    found.forEach((i, rank) => {
      const item = element("li", title(i));
      if (title(i) !== data.ids[i]) item.append(element("small", data.ids[i]));
      item.id = `hit-${rank}`;
      item.role = "option";
      item.addEventListener("pointerdown", (event) => { event.preventDefault(); take(rank); });
      hits.append(item);
    });
    if (wanted && !found.length) hits.append(element("li", "No node of this id or name"));
    hits.hidden = !wanted;
    mark();
  };
  const mark = () => {
    find.setAttribute("aria-expanded", String(!hits.hidden));
    found.forEach((_, rank) => hits.children[rank].setAttribute("aria-selected", String(rank === at)));
    if (at >= 0 && !hits.hidden) find.setAttribute("aria-activedescendant", `hit-${at}`);
    else find.removeAttribute("aria-activedescendant");
  };
  const take = (rank) => {
    const i = found[rank];
    hits.hidden = true;
    mark();
    find.value = title(i);
    select(i);
    bringIntoView(i);
    tellChoice();
  };
  find.addEventListener("input", search);
  find.addEventListener("blur", () => { hits.hidden = true; mark(); });
  find.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (hits.hidden) search();
      else if (found.length) at = (at + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length;
      mark();
    } else if (event.key === "Enter" && at >= 0 && !hits.hidden) take(at);
    else if (event.key === "Escape") { hits.hidden = true; mark(); }
    else return;
    event.preventDefault();
  });

  // ---- tools

  const lassoing = () => $("lasso").getAttribute("aria-pressed") === "true";
  const use = (lasso) => {
    $("lasso").setAttribute("aria-pressed", String(lasso));
    $("move").setAttribute("aria-pressed", String(!lasso));
    Plotly.relayout(plot, { dragmode: lasso ? "lasso" : "pan" });
  };
  $("move").addEventListener("click", () => use(false));
  $("lasso").addEventListener("click", () => use(true));
  $("closer").addEventListener("click", () => zoom(0.7));
  $("farther").addEventListener("click", () => zoom(1 / 0.7));
  $("whole").addEventListener("click", whole);
  $("all").addEventListener("click", () => setAll(true));
  $("none").addEventListener("click", () => setAll(false));
  $("clear").addEventListener("click", clear);
  $("download").addEventListener("click", download);
  const keys = {
    ArrowLeft: () => look(moved(ranges()[0], -0.1), ranges()[1]), ArrowRight: () => look(moved(ranges()[0], 0.1), ranges()[1]),
    ArrowDown: () => look(ranges()[0], moved(ranges()[1], -0.1)), ArrowUp: () => look(ranges()[0], moved(ranges()[1], 0.1)),
    "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7), 0: whole, Escape: clear,
  };
  plot.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });

  colorings.forEach((column, i) => { const option = element("option", column.name); option.value = i; $("color").append(option); });
  $("color").disabled = !colorings.length;
  $("color").addEventListener("change", () => { state.color = Number($("color").value); showClasses(); refresh(); });

  // ---- hover and click

  const tip = $("tip");
  const showTip = (i, event) => {
    tip.replaceChildren(element("strong", title(i)));
    for (const [name, value] of facts(i)) tip.append(element("div", `${name}: ${value}`));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(6, Math.min(event.clientX + 14, innerWidth - box.width - 6))}px`;
    tip.style.top = `${event.clientY + 16 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 16}px`;
  };
  const pointOf = (event) => event.points.find((point) => point.curveNumber === 0);

  draw().then(() => {
    plot.on("plotly_hover", (event) => { const point = pointOf(event); if (point && event.event.pointerType !== "touch") showTip(order[point.pointNumber], event.event); });
    plot.on("plotly_unhover", () => { tip.hidden = true; });
    plot.on("plotly_click", (event) => { const point = pointOf(event); if (point) { select(order[point.pointNumber]); tellChoice(); } });
    plot.on("plotly_doubleclick", whole);
    plot.on("plotly_selected", (event) => {
      if (!event?.lassoPoints) return;  // a choice that was cleared
      state.chosen = event.points.filter((point) => point.curveNumber === 0).map((point) => order[point.pointNumber]);
      tellChoice();
    });
    tellChoice();
    plot.dataset.ready = "true";
  });
  showClasses();
  dark.addEventListener("change", () => { showClasses(); refresh(); });
})();
