// The flame graph on a canvas: zoomed, searched, below threads, phases or modules. Frames narrower than
// a pixel are left out until they are zoomed into.

const FRAME_HEIGHT = 20;
const MOST_LEVELS = 300;
const NARROWEST = 0.7;
const MET = 7;

// Nodes in the order they are made, each parent before its children; node 0 is all.
class FrameNodes {
  constructor() {
    this.parent = [-1];
    this.frame = [-1];
    this.depth = [0];
    this.own = { samples: [0], cpu: [0], wall: [0] };
  }

  add(parent, frame) {
    this.parent.push(parent);
    this.frame.push(frame);
    this.depth.push(this.depth[parent] + 1);
    for (const measure in this.own) this.own[measure].push(0);
    return this.parent.length - 1;
  }

  finish() {
    this.total = {};
    for (const measure in this.own) {
      const total = Float64Array.from(this.own[measure]);
      for (let node = total.length - 1; node > 0; node--) total[this.parent[node]] += total[node];
      this.total[measure] = total;
    }
    this.children = Array.from({ length: this.parent.length }, () => []);
    for (let node = 1; node < this.parent.length; node++) this.children[this.parent[node]].push(node);
    const { cpu, wall } = this.total;
    for (const siblings of this.children) siblings.sort((a, b) => cpu[b] - cpu[a] || wall[b] - wall[a] || a - b);
  }
}

class Flame {
  constructor(block) {
    this.block = block;
    this.trees = new Map();
    this.state = { mode: "all", measure: "cpu", zoom: 0, search: "" };
    this.focused = 0;
    this.hovered = -1;
    this.make();
    this.use("all");
    this.again = drawnToFit(this.stage, (width) => this.draw(width));
  }

  // Trees: of all, or with the group as the outermost frame.

  use(mode) {
    this.state.mode = mode;
    if (!this.trees.has(mode)) this.trees.set(mode, this.build(mode));
    this.nodes = this.trees.get(mode);
    this.state.zoom = 0;
    this.focused = 0;
    this.find();
  }

  build(mode) {
    const { parents, frameOf, met } = this.block;
    const place = ["thread", "phase", "module"].indexOf(mode) + 1;
    const nodes = new FrameNodes();
    const tops = new Map();
    const made = new Map();
    const nodeOf = (node, group) => {
      const path = [];
      let at = node;
      const key = (one) => one * 65536 + group;
      while (at >= 0 && !made.has(key(at))) {
        path.push(at);
        at = parents[at];
      }
      let above = at >= 0 ? made.get(key(at)) : place ? top(group) : 0;
      for (const one of path.reverse()) {
        above = nodes.add(above, frameOf[one]);
        made.set(key(one), above);
      }
      return above;
    };
    const top = (group) => {
      if (!tops.has(group)) tops.set(group, nodes.add(0, -2 - group));
      return tops.get(group);
    };
    for (let at = 0; at < met.length; at += MET) {
      const node = nodeOf(met[at], place ? met[at + place] : 0);
      nodes.own.samples[node] += met[at + 4];
      nodes.own.cpu[node] += met[at + 5];
      nodes.own.wall[node] += met[at + 6];
    }
    nodes.finish();
    return nodes;
  }

  frameOf(node) {
    const frame = this.nodes.frame[node];
    if (frame === -1) return ["all", "", -1];
    if (frame < -1) return [this.block.groups[this.state.mode][-2 - frame], this.state.mode, -1];
    return this.block.frames[frame];
  }

  // Words.

  describe(node) {
    const [name, place] = this.frameOf(node);
    const weights = this.nodes.total[this.state.measure];
    const whole = weights[0];
    const part = (value) => (whole ? writeShare(value / whole) : "0.0") + " %";
    const what = this.state.measure === "cpu" ? "of CPU time" : "of the time of threads";
    const samples = this.nodes.total.samples[node];
    return (
      `${name}${place ? ` (${place})` : ""}: ${part(weights[node])} ${what}, ${write(weights[node], "duration")}, ` +
      `${grouped(String(samples))} ${samples === 1 ? "sample" : "samples"}; itself ${part(this.nodes.own[this.state.measure][node])}`
    );
  }

  // The parts of the page.

  make() {
    const { block } = this;
    const modes = [["all", "All"], ...Object.keys(block.groups).map((kind) => [kind, `By ${kind}`])];
    this.input = element("input", {
      type: "search",
      class: "search",
      placeholder: "Search frames",
      "aria-label": "Search frames",
      oninput: (event) => {
        this.state.search = event.target.value.trim().toLowerCase();
        this.find();
        this.again();
      },
      onkeydown: (event) => {
        if (event.key === "Escape") this.reset();
      },
    });
    this.matched = element("span", { class: "status", role: "status" });
    this.measure = element("p", { class: "note" });
    this.details = element("p", { class: "flame-details", role: "status" });
    this.canvas = element("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "flame graph",
      "aria-label": "Flame graph. Arrow keys go from frame to frame, Enter zooms in, Escape shows all, slash searches.",
      onkeydown: (event) => this.pressed(event),
      onpointermove: (event) => this.pointed(event),
      onpointerleave: () => this.hover(-1),
      onclick: (event) => this.zoom(this.nodeAt(event)),
      onfocus: () => this.again(),
      onblur: () => this.again(),
    });
    this.stage = element("div", { class: "stage" }, this.canvas);
    this.holder = element(
      "div",
      { class: "panel flame" },
      element(
        "div",
        { class: "controls" },
        choice("Frames", modes, "all", (mode) => {
          this.use(mode);
          this.again();
        }),
        choice("Time", [["cpu", "CPU time"], ["wall", "With waiting"]], "cpu", (measure) => {
          this.state.measure = measure;
          this.find();
          this.again();
        }),
        this.input,
        this.matched,
        element("span", { class: "spring" }),
        button("Reset zoom", { onclick: () => this.reset() })
      ),
      this.legend(),
      this.details,
      this.stage,
      this.measure
    );
  }

  legend() {
    const present = new Set(this.block.frameOf.map((frame) => this.block.frames[frame][2]));
    const legend = element("div", { class: "legend" });
    this.block.kinds.forEach((kind, at) => {
      if (present.has(at)) legend.append(element("span", { class: "legend-entry" }, element("span", { class: `dot frame-${at}` }), kind));
    });
    return legend;
  }

  // Drawing.

  colours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    return {
      kinds: this.block.kinds.map((_, at) => read(`--frame-${at}`)),
      group: read("--frame-group"),
      text: read("--frame-text"),
      groupText: read("--text"),
      found: read("--found"),
      foundText: read("--found-text"),
      edge: read("--text"),
      surface: read("--surface"),
    };
  }

  layout(width) {
    const { parent, children, depth } = this.nodes;
    const weights = this.nodes.total[this.state.measure];
    const { zoom } = this.state;
    const placed = [];
    for (let node = parent[zoom]; node >= 0; node = parent[node]) placed.push([node, 0, width]);
    const whole = weights[zoom];
    const waiting = [[zoom, 0, width]];
    const deepest = depth[zoom] + MOST_LEVELS;
    while (waiting.length) {
      const entry = waiting.pop();
      placed.push(entry);
      if (depth[entry[0]] >= deepest) continue;
      let x = entry[1];
      for (const child of children[entry[0]]) {
        const wide = whole ? (width * weights[child]) / whole : 0;
        if (wide >= NARROWEST) waiting.push([child, x, wide]);
        x += wide;
      }
    }
    return placed;
  }

  draw(width) {
    this.width = width;
    const { depth } = this.nodes;
    const shift = Math.max(0, depth[this.state.zoom] - 20);
    this.placed = this.layout(width).filter(([node]) => depth[node] >= shift);
    this.shift = shift;
    let levels = 1;
    for (const [node] of this.placed) levels = Math.max(levels, depth[node] - shift + 1);
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const height = levels * FRAME_HEIGHT;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = height + "px";
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "11.5px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
    context.textBaseline = "middle";
    this.letter = context.measureText("m").width;
    const colours = this.colours();
    for (const entry of this.placed) this.drawFrame(context, colours, entry);
    this.drawEdge(context, colours);
    this.measure.textContent = this.block.measures[this.state.measure];
    this.details.textContent = this.describe(this.hovered >= 0 ? this.hovered : this.focused);
    this.canvas.setAttribute("data-zoom", this.frameOf(this.state.zoom)[0]);
  }

  drawFrame(context, colours, [node, x, wide]) {
    const y = (this.nodes.depth[node] - this.shift) * FRAME_HEIGHT;
    const [name, , kind] = this.frameOf(node);
    const isFound = this.found && this.found.has(node);
    context.globalAlpha = this.nodes.depth[node] < this.nodes.depth[this.state.zoom] ? 0.5 : this.found && this.found.size && !isFound ? 0.45 : 1;
    context.fillStyle = isFound ? colours.found : kind < 0 ? colours.group : colours.kinds[kind];
    context.fillRect(x, y, Math.max(wide - 0.6, 0.5), FRAME_HEIGHT - 1);
    const room = Math.floor((wide - 8) / this.letter);
    if (room >= 3) {
      context.fillStyle = isFound ? colours.foundText : kind < 0 ? colours.groupText : colours.text;
      context.globalAlpha = Math.max(context.globalAlpha, 0.8);
      context.fillText(this.fitted(context, name, wide - 8), x + 4, y + FRAME_HEIGHT / 2);
    }
    context.globalAlpha = 1;
  }

  fitted(context, name, room) {
    if (context.measureText(name).width <= room) return name;
    let end = Math.min(name.length, Math.floor(room / this.letter));
    while (end > 1 && context.measureText(name.slice(0, end) + "…").width > room) end--;
    return name.slice(0, end) + "…";
  }

  drawEdge(context, colours) {
    for (const node of [this.hovered, document.activeElement === this.canvas ? this.focused : -1]) {
      const entry = this.placed.find(([one]) => one === node);
      if (!entry) continue;
      context.strokeStyle = colours.edge;
      context.lineWidth = 2;
      context.strokeRect(entry[1] + 1, (this.nodes.depth[node] - this.shift) * FRAME_HEIGHT + 1, Math.max(entry[2] - 2.6, 1), FRAME_HEIGHT - 3);
    }
  }

  // Searching: the share of the outermost frames that match, so that nothing counts twice.

  find() {
    const { search } = this.state;
    this.found = null;
    this.matched.textContent = "";
    if (!search) return;
    this.found = new Set();
    const weights = this.nodes.total[this.state.measure];
    const inside = new Uint8Array(weights.length);
    let sum = 0;
    for (let node = 1; node < weights.length; node++) {
      const above = inside[this.nodes.parent[node]];
      const [name, place] = this.frameOf(node);
      const matches = `${name} ${place}`.toLowerCase().includes(search);
      if (matches) this.found.add(node);
      if (matches && !above) sum += weights[node];
      inside[node] = above || matches ? 1 : 0;
    }
    this.matched.textContent = `matched ${weights[0] ? writeShare(sum / weights[0]) : "0.0"} %, ${grouped(String(this.found.size))} frames`;
  }

  // By mouse and keyboard.

  nodeAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = ((event.clientX - box.left) * this.width) / box.width;
    const depth = Math.floor((event.clientY - box.top) / FRAME_HEIGHT) + this.shift;
    const entry = this.placed.find(([node, from, wide]) => this.nodes.depth[node] === depth && x >= from && x < from + wide);
    return entry ? entry[0] : -1;
  }

  pointed(event) {
    this.hover(this.nodeAt(event));
  }

  hover(node) {
    if (node === this.hovered) return;
    this.hovered = node;
    this.draw(this.width);
  }

  zoom(node) {
    if (node < 0) return;
    this.state.zoom = node;
    this.focused = node;
    this.draw(this.width);
  }

  reset() {
    this.state.search = "";
    this.input.value = "";
    this.find();
    this.zoom(0);
  }

  neighbour(key) {
    const { parent, children, depth } = this.nodes;
    const isPlaced = new Set(this.placed.map(([node]) => node));
    if (key === "ArrowUp") return parent[this.focused];
    if (key === "ArrowDown") return children[this.focused].find((child) => isPlaced.has(child));
    const row = this.placed.filter(([node]) => depth[node] === depth[this.focused]).sort((a, b) => a[1] - b[1]);
    const at = row.findIndex(([node]) => node === this.focused) + (key === "ArrowRight" ? 1 : -1);
    return row[at] && row[at][0];
  }

  pressed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") this.reset();
    else if (event.key === "Enter" || event.key === " ") this.zoom(this.focused);
    else if (event.key.startsWith("Arrow")) {
      const next = this.neighbour(event.key);
      if (next !== undefined && next >= 0) this.focused = next;
      this.hovered = -1;
      this.draw(this.width);
    } else return;
    event.preventDefault();
  }
}
