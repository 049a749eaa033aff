// The system map: boxes to be clicked, each with what it holds, and the way into it.

class CodeMap {
  constructor(block) {
    this.block = block;
    this.path = "";
    this.chosen = null;
    this.trail = element("nav", { class: "trail", "aria-label": "Where the picture is" });
    this.stage = element("div", { class: "map-stage" });
    this.about = element("div", { class: "map-about", "aria-live": "polite" });
    this.warmth = block.warmth;
    this.holder = element("div", { class: "panel codemap" }, this.trail, ...this.warmths(), this.stage, this.about);
    this.open(block.start);
  }

  warmths() {
    if (this.block.warmths.length < 2) return [];
    return [
      element("span", { class: "note", text: "The warmer, the more " }),
      choice("The warmer, the more", this.block.warmths, this.warmth, (by) => {
        this.warmth = by;
        this.draw();
        this.light();
      }),
    ];
  }

  open(path) {
    this.path = path;
    this.chosen = null;
    this.draw();
    this.drawTrail();
    this.tell(null);
  }

  drawTrail() {
    const names = this.path ? this.path.split(".") : [];
    const parts = [button(this.block.name, { class: "button crumb", onclick: () => this.open("") })];
    names.forEach((name, at) => {
      const inner = names.slice(0, at + 1).join(".");
      parts.push(element("span", { class: "note", text: " › " }), button(name, { class: "button crumb", onclick: () => this.open(inner) }));
    });
    this.trail.replaceChildren(...parts);
  }

  draw() {
    const picture = this.block.pictures[this.path];
    const root = drawn("svg", { viewBox: `0 0 ${picture.width} ${picture.height}`, role: "group", "aria-label": `Modules of ${this.path || this.block.name}` });
    const boxes = new Map(picture.boxes.map((box) => [box.name, box]));
    this.edges = picture.edges.map(([importer, imported, weight]) => {
      const line = drawn("path", { class: "map-edge", d: this.curve(boxes.get(importer), boxes.get(imported)), "stroke-width": (0.7 + Math.log2(1 + weight) / 2).toFixed(1) });
      line.append(drawn("title", { text: `${importer} imports ${imported}: ${weight}` }));
      root.append(line);
      return { importer, imported, line };
    });
    this.shapes = new Map();
    for (const box of picture.boxes) {
      const shape = this.box(box);
      this.shapes.set(box.name, shape);
      root.append(shape);
    }
    this.stage.replaceChildren(root);
  }

  curve(start, end) {
    const from = start.x + start.width / 2;
    const to = end.x + end.width / 2;
    if (start.y + start.height <= end.y) {
      const top = start.y + start.height;
      const bend = (end.y - top) / 2;
      return `M${from} ${top}C${from} ${top + bend} ${to} ${end.y - bend} ${to} ${end.y}`;
    }
    if (end.y + end.height <= start.y) {
      const bottom = end.y + end.height;
      const bend = (start.y - bottom) / 2;
      return `M${from} ${start.y}C${from} ${start.y - bend} ${to} ${bottom + bend} ${to} ${bottom}`;
    }
    const above = Math.min(start.y, end.y) - 22;
    return `M${from} ${start.y}C${from} ${above} ${to} ${above} ${to} ${end.y}`;
  }

  box(box) {
    const middle = box.x + box.width / 2;
    const colour = box.colours[this.warmth];
    const shape = drawn("g", {
      class: colour ? "map-box heated" : "map-box",
      tabindex: "0",
      role: "button",
      "aria-label": `${box.name}, ${box.code} lines of code`,
      onclick: () => this.choose(box.name),
      onkeydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        this.choose(box.name);
      },
    });
    const face = drawn("rect", { x: box.x, y: box.y, width: box.width, height: box.height, rx: 5 });
    if (colour) face.style.fill = colour;
    const room = Math.max(Math.floor(box.width / 7) - 1, 6);
    const name = box.name.length > room ? box.name.slice(0, room - 1) + "…" : box.name;
    shape.append(
      face,
      drawn("text", { class: "map-name", "text-anchor": "middle", x: middle, y: box.y + box.height / 2 - 1, text: name }),
      drawn("text", { class: "map-size", "text-anchor": "middle", x: middle, y: box.y + box.height / 2 + 12, text: grouped(String(box.code)) }),
      drawn("title", { text: box.name })
    );
    return shape;
  }

  choose(name) {
    this.chosen = this.chosen === name ? null : name;
    this.light();
    this.tell(this.chosen);
  }

  light() {
    for (const [other, shape] of this.shapes) shape.classList.toggle("chosen", other === this.chosen);
    for (const edge of this.edges) {
      edge.line.classList.toggle("lit", this.chosen !== null && (edge.importer === this.chosen || edge.imported === this.chosen));
      edge.line.classList.toggle("dim", this.chosen !== null && edge.importer !== this.chosen && edge.imported !== this.chosen);
    }
  }

  tell(name) {
    if (name === null) {
      this.about.replaceChildren(element("p", { class: "note", text: this.block.hint }));
      return;
    }
    const inner = this.path ? `${this.path}.${name}` : name;
    const facts = Object.hasOwn(this.block.parts, inner) ? this.block.parts[inner] : { facts: [], functions: [] };
    const rows = [
      ...facts.facts,
      ["imports", this.edges.filter((edge) => edge.importer === name).map((edge) => edge.imported).join(", ") || "nothing here"],
      ["imported by", this.edges.filter((edge) => edge.imported === name).map((edge) => edge.importer).join(", ") || "nothing here"],
    ];
    const made = [element("h3", { class: "part", text: inner }), showPairs({ rows })];
    if (Object.hasOwn(this.block.pictures, inner)) made.push(element("p", {}, button(`Look into ${name}`, { class: "button main look-into", onclick: () => this.open(inner) })));
    if (facts.functions.length) {
      made.push(
        showTable({
          key: `functions of ${inner}`,
          heading: this.block.functions,
          columns: this.block.columns.map((heading, at) => ({ heading, left: at === this.block.columns.length - 1 })),
          rows: facts.functions.map(([function_name, ...cells]) => ({ name: function_name, cells })),
        })
      );
    }
    this.about.replaceChildren(...made);
  }
}
