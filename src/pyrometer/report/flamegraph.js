// Draws the flame graph from its data: zoom, search, two measures of time, by mouse and by keyboard.
// Names from the run are only ever set as text, never as markup.
(function () {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const HTML = "http://www.w3.org/1999/xhtml";
  const root = document.currentScript.closest("svg");
  const data = JSON.parse(root.querySelector(".data").textContent);
  const { row, top, margin, letter } = data.sizes;
  const standalone = root === document.documentElement;

  // Nodes lie in data.nodes one after the other, each parent before its children: depth, frame,
  // samples, CPU time and wall time of the node itself.
  const FIELDS = 5;
  const count = data.nodes.length / FIELDS;
  const parent = new Int32Array(count).fill(-1);
  const depth = new Int32Array(count);
  const frame = new Int32Array(count);
  const children = Array.from({ length: count }, () => []);
  const own = { samples: new Float64Array(count), cpu: new Float64Array(count), wall: new Float64Array(count) };
  const total = {};

  function read() {
    const above = [];
    for (let node = 0; node < count; node++) {
      const at = node * FIELDS;
      depth[node] = data.nodes[at];
      frame[node] = data.nodes[at + 1];
      own.samples[node] = data.nodes[at + 2];
      own.cpu[node] = data.nodes[at + 3];
      own.wall[node] = data.nodes[at + 4];
      above.length = depth[node];
      if (above.length) {
        parent[node] = above[above.length - 1];
        children[parent[node]].push(node);
      }
      above.push(node);
    }
    for (const measure of ["samples", "cpu", "wall"]) {
      total[measure] = Float64Array.from(own[measure]);
      for (let node = count - 1; node > 0; node--) total[measure][parent[node]] += total[measure][node];
    }
  }

  const state = { time: "cpu", zoom: 0, search: "", matches: null };
  let width = data.sizes.width;
  let drawn = new Map();
  const layer = root.querySelector(".frames");
  const details = root.querySelector(".details");

  function element(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // Words.

  function share(part, whole) {
    const percent = whole ? (100 * part) / whole : 0;
    return percent > 0 && percent < 0.05 ? "<0.1" : percent.toFixed(1);
  }

  function duration(ns) {
    for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]])
      if (ns >= size) return (ns / size).toFixed(ns >= 100 * size ? 0 : ns >= 10 * size ? 1 : 2) + " " + unit;
    return Math.round(ns) + " ns";
  }

  // Half of Wilson's 95 % interval, in points, as everywhere in the reports.
  function margin95(part, whole) {
    const samples = state.time === "cpu" ? data.effective : total.samples[0];
    if (!whole || !samples) return "";
    const z2 = 3.8416, p = part / whole;
    const half = (1.96 * Math.sqrt((p * (1 - p)) / samples + z2 / (4 * samples * samples))) / (1 + z2 / samples);
    return " ± " + (100 * half).toFixed(1);
  }

  function describe(node) {
    const [name, place] = data.frames[frame[node]];
    const weights = total[state.time];
    const whole = weights[0];
    const what = state.time === "cpu" ? "of CPU time" : "of the time of threads";
    const count = total.samples[node].toLocaleString("en");
    return (
      name + (place ? " (" + place + ")" : "") + ": " +
      share(weights[node], whole) + " %" + margin95(weights[node], whole) + " " + what +
      (data.notes ? ", " + data.notes[node] : "") + ", " + duration(weights[node]) + ", " + count + (count === "1" ? " sample" : " samples") +
      "; itself " + share(own[state.time][node], whole) + " %"
    );
  }

  // A letter of a wide script takes the room of two.
  function fitted(text, room) {
    let used = 0, end = 0;
    const letters = Array.from(text);
    const cells = letters.map((one) => (one.codePointAt(0) >= 0x1100 ? 2 : 1));
    if (cells.reduce((a, b) => a + b, 0) <= room) return text;
    while (end < letters.length && used + cells[end] <= room - 1) used += cells[end++];
    return room < 3 ? "" : letters.slice(0, end).join("") + "…";
  }

  // Where each frame lies: those too narrow to see are left out, until they are zoomed into.

  function layout(narrowest) {
    const weights = total[state.time];
    const room = width - 2 * margin;
    const placed = [];
    for (let node = parent[state.zoom]; node !== -1; node = parent[node]) placed.push([node, margin, room]);
    const whole = weights[state.zoom];
    const waiting = [[state.zoom, margin, room]];
    while (waiting.length) {
      const entry = waiting.pop();
      placed.push(entry);
      let x = entry[1];
      for (const child of children[entry[0]]) {
        const wide = whole ? (room * weights[child]) / whole : 0;
        if (wide >= narrowest) waiting.push([child, x, wide]);
        x += wide;
      }
    }
    return placed;
  }

  function draw() {
    let narrowest = 0.5;
    let placed = layout(narrowest);
    while (placed.length > 6000) placed = layout((narrowest *= 1.6));
    placed.sort((a, b) => depth[a[0]] - depth[b[0]] || a[1] - b[1]);
    const made = document.createDocumentFragment();
    drawn = new Map();
    let deepest = 0;
    for (const [node, x, wide] of placed) {
      deepest = Math.max(deepest, depth[node]);
      const group = drawFrame(node, x, wide);
      drawn.set(node, group);
      made.appendChild(group);
    }
    layer.replaceChildren(made);
    const end = top + (deepest + 1) * row;
    const below = root.querySelector(".below");
    if (below) below.setAttribute("transform", "translate(0 " + end + ")");
    const height = end + (below ? below.childElementCount * row : 0) + margin;
    root.setAttribute("height", height);
    root.setAttribute("width", width);
    root.setAttribute("viewBox", "0 0 " + width + " " + height);
    drawn.get(state.zoom).setAttribute("tabindex", "0");
    show(state.zoom);
  }

  function drawFrame(node, x, wide) {
    const name = data.frames[frame[node]][0];
    // By place, where a picture says so, else by what the frame is.
    const kind = data.kinds ? data.kinds[node] : data.frames[frame[node]][2];
    const y = top + depth[node] * row;
    const found = state.matches !== null && state.matches[frame[node]];
    const classes = "frame k" + kind + (found ? " found" : "") + (depth[node] < depth[state.zoom] ? " above" : "");
    const words = describe(node);
    const group = element("g", { class: classes, tabindex: "-1", role: "button", "aria-label": words });
    group.pyrometerNode = node;
    group.appendChild(element("title", {}, words));
    group.appendChild(
      element("rect", { x: x.toFixed(2), y, width: Math.max(wide - 0.4, 0.4).toFixed(2), height: row - 1 })
    );
    const text = fitted(name, Math.floor((wide - 6) / letter));
    if (text) group.appendChild(element("text", { x: (x + 3).toFixed(2), y: y + row - 5 }, text));
    return group;
  }

  // What the reader does.

  function show(node) {
    details.textContent = fitted(describe(node), Math.floor((width - 2 * margin) / letter));
  }

  function zoom(node) {
    state.zoom = node;
    draw();
    remember();
  }

  function measure(time) {
    state.time = time;
    for (const list of children) list.sort((a, b) => total[time][b] - total[time][a] || a - b);
    controls.time.textContent = time === "cpu" ? "show wall time" : "show CPU time";
    root.querySelector(".measure").textContent = data.measures[time];
    search(state.search);
  }

  function search(text) {
    state.search = text;
    state.matches = text ? data.frames.map(matcher(text)) : null;
    controls.found.textContent = text ? matchedShare() : "";
    draw();
    remember();
  }

  function matcher(text) {
    let pattern = null;
    try {
      pattern = new RegExp(text, "i");
    } catch (error) {
      const plain = text.toLowerCase();
      return ([name, place]) => (name + " " + place).toLowerCase().includes(plain);
    }
    return ([name, place]) => pattern.test(name) || pattern.test(place);
  }

  // A frame below another that is found is part of it, and counts once.
  function matchedShare() {
    const inside = new Uint8Array(count);
    const weights = total[state.time];
    let matched = 0;
    for (let node = 0; node < count; node++) {
      const above = node > 0 && inside[parent[node]];
      inside[node] = above || state.matches[frame[node]] ? 1 : 0;
      if (inside[node] && !above) matched += weights[node];
    }
    return "found: " + share(matched, weights[0]) + " %";
  }

  function reset() {
    controls.input.value = "";
    state.zoom = 0;
    search("");
  }

  // The address keeps what is shown, so that it can be sent on.
  function remember() {
    if (!standalone) return;
    const kept = new URLSearchParams();
    if (state.zoom) kept.set("zoom", state.zoom);
    if (state.search) kept.set("search", state.search);
    if (state.time !== "cpu") kept.set("time", state.time);
    try {
      history.replaceState(null, "", "#" + kept);
    } catch (error) {
      // A page that may not change its address shows the same without.
    }
  }

  function recall() {
    const kept = new URLSearchParams(standalone ? location.hash.slice(1) : "");
    const node = Number(kept.get("zoom"));
    state.zoom = Number.isInteger(node) && node > 0 && node < count ? node : 0;
    state.search = controls.input.value = kept.get("search") || "";
    measure(kept.get("time") === "wall" && data.measures.wall !== undefined ? "wall" : "cpu");
  }

  const controls = {};

  function makeControls() {
    const holder = element("foreignObject", { x: margin, y: data.sizes.controls, width: "100%", height: 26 });
    const bar = document.createElementNS(HTML, "div");
    bar.setAttribute("class", "controls");
    const make = (name, attributes, text) => {
      const made = document.createElementNS(HTML, name);
      for (const key in attributes) made.setAttribute(key, attributes[key]);
      if (text) made.textContent = text;
      bar.appendChild(made);
      return made;
    };
    controls.input = make("input", {
      type: "search", placeholder: "search (or press /)", "aria-label": "search frames", size: 24,
    });
    controls.reset = make("button", { type: "button" }, "reset");
    controls.time = make("button", { type: "button" });
    controls.time.hidden = data.measures.wall === undefined;
    controls.found = make("output", { "aria-live": "polite" });
    controls.input.addEventListener("input", () => search(controls.input.value));
    controls.reset.addEventListener("click", reset);
    controls.time.addEventListener("click", () => measure(state.time === "cpu" ? "wall" : "cpu"));
    holder.appendChild(bar);
    root.querySelector(".hint").replaceWith(holder);
  }

  function nodeAt(event) {
    const group = event.target.closest && event.target.closest(".frame");
    return group && group.pyrometerNode !== undefined ? group.pyrometerNode : null;
  }

  function neighbour(node, key) {
    if (key === "ArrowUp") return parent[node] === -1 ? null : parent[node];
    if (key === "ArrowDown") return children[node].find((child) => drawn.has(child));
    const alike = Array.from(drawn.keys()).filter((other) => depth[other] === depth[node]);
    return alike[alike.indexOf(node) + (key === "ArrowRight" ? 1 : -1)];
  }

  function focus(node) {
    for (const group of drawn.values()) group.setAttribute("tabindex", "-1");
    drawn.get(node).setAttribute("tabindex", "0");
    drawn.get(node).focus();
  }

  function pressed(event) {
    const typing = event.target === controls.input;
    if (event.key === "Escape") {
      reset();
      if (!typing) focus(0);
    } else if (event.key === "/" && !typing) {
      controls.input.focus();
      event.preventDefault();
    } else if (!typing) {
      pressedOnFrame(event);
    }
  }

  function pressedOnFrame(event) {
    const node = nodeAt(event);
    if (node === null) return;
    if (event.key === "Enter" || event.key === " ") {
      zoom(node);
      focus(node);
      event.preventDefault();
    } else if (event.key.startsWith("Arrow")) {
      const next = neighbour(node, event.key);
      if (next !== null && next !== undefined) focus(next);
      event.preventDefault();
    }
  }

  function fit() {
    // The window's width holds that of its scroll bar.
    const room = standalone ? window.innerWidth - 18 : root.parentNode.clientWidth;
    width = Math.max(room || data.sizes.width, 480);
  }

  read();
  makeControls();
  layer.addEventListener("click", (event) => {
    const node = nodeAt(event);
    if (node !== null) zoom(node);
  });
  for (const kind of ["mouseover", "focusin"])
    layer.addEventListener(kind, (event) => {
      const node = nodeAt(event);
      if (node !== null) show(node);
    });
  layer.addEventListener("mouseleave", () => show(state.zoom));
  (standalone ? window : root).addEventListener("keydown", pressed);
  window.addEventListener("resize", () => {
    fit();
    draw();
  });
  if (standalone) window.addEventListener("hashchange", recall);
  fit();
  recall();
})();
