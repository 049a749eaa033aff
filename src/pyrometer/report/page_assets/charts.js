// Charts: steps over time, a line, and bars. Each says its summary to those who cannot see it, and a
// cursor goes over it by mouse or by arrow keys.

const CHART = { left: 64, right: 14, top: 14, bottom: 30 };

function niceTicks(most, count) {
  if (!(most > 0)) return [0];
  const rough = most / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, at) => at * step);
}

// Whole powers of two for bytes, round numbers for all else.
function ticksFor(most, unit) {
  if (unit !== "bytes") return niceTicks(most, 4);
  const scale = 1024 ** Math.max(0, Math.floor(Math.log(most || 1) / Math.log(1024)));
  return niceTicks(most / scale, 4).map((tick) => tick * scale);
}

function tickText(value, unit) {
  return value === 0 ? "0" : write(value, unit).replace(/\.0+(?= )/, "").replace(/(\.\d*?)0+(?= )/, "$1");
}

class Chart {
  constructor({ summary, height, count, cursor, draw }) {
    this.height = height;
    this.count = count;
    this.cursor = cursor;
    this.drawInside = draw;
    this.at = -1;
    this.tip = element("div", { class: "tip", hidden: true });
    this.said = element("p", { class: "unseen", role: "status" });
    this.holder = element("div", {
      class: "chart",
      tabindex: "0",
      role: "group",
      "aria-label": `${summary} Arrow keys go from one to the next.`,
      onkeydown: (event) => this.pressed(event),
      onpointermove: (event) => this.pointed(event),
      onpointerleave: () => this.show(-1),
      onblur: () => this.show(-1),
    });
    this.svg = drawn("svg", { "aria-hidden": "true", height });
    this.holder.append(this.svg, this.tip, this.said);
    requestAnimationFrame(() => drawnToFit(this.holder, (width) => this.draw(width)));
    this.draw(960);
  }

  draw(width) {
    this.width = width;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    this.plot = {
      x: CHART.left,
      y: CHART.top,
      width: Math.max(40, width - CHART.left - CHART.right),
      height: this.height - CHART.top - CHART.bottom,
    };
    this.svg.replaceChildren();
    this.drawInside(this);
    this.line = drawn("line", { class: "cursor", y1: this.plot.y, y2: this.plot.y + this.plot.height, visibility: "hidden" });
    this.svg.append(this.line);
  }

  add(tag, attributes, ...children) {
    const made = drawn(tag, attributes, ...children);
    this.svg.append(made);
    return made;
  }

  words(x, y, text, attributes) {
    return this.add("text", { x: x.toFixed(1), y: y.toFixed(1), text, ...attributes });
  }

  axisY(most, unit) {
    for (const tick of ticksFor(most, unit)) {
      const y = this.plot.y + this.plot.height * (1 - tick / most);
      this.add("line", { class: tick === 0 ? "axis" : "rule", x1: this.plot.x, x2: this.plot.x + this.plot.width, y1: y.toFixed(1), y2: y.toFixed(1) });
      this.words(this.plot.x - 8, y + 4, tickText(tick, unit), { class: "tick", "text-anchor": "end" });
    }
  }

  middle(at) {
    return this.plot.x + (this.plot.width * (at + 0.5)) / this.count;
  }

  pointed(event) {
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) * this.width) / box.width - this.plot.x;
    this.show(x < 0 || x > this.plot.width ? -1 : Math.min(this.count - 1, Math.floor((x * this.count) / this.plot.width)));
  }

  pressed(event) {
    const to = { ArrowRight: this.at + 1, ArrowLeft: this.at - 1, Home: 0, End: this.count - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.show(Math.max(0, Math.min(this.count - 1, to)));
    this.said.textContent = Array.from(this.tip.children, (line) => line.textContent).join(", ");
  }

  show(at) {
    this.at = at;
    this.tip.hidden = at < 0;
    this.line.setAttribute("visibility", at < 0 ? "hidden" : "visible");
    if (at < 0) return;
    const x = this.middle(at);
    this.line.setAttribute("x1", x.toFixed(1));
    this.line.setAttribute("x2", x.toFixed(1));
    this.tip.replaceChildren(...this.cursor(at));
    const room = this.holder.clientWidth;
    const wide = this.tip.offsetWidth;
    const there = (x * room) / this.width;
    this.tip.style.left = Math.max(0, there + 14 + wide > room ? there - wide - 14 : there + 14) + "px";
  }
}

function tipLine(name, value, colour) {
  const line = element("div", { class: "tip-line" });
  if (colour) {
    const dot = element("span", { class: "dot" });
    dot.style.background = colour;
    line.append(dot);
  }
  line.append(element("span", { class: "tip-name", text: name + " " }), element("span", { class: "tip-value", text: value }));
  return line;
}

// Steps.

function stepTip(group, at) {
  const [index, duration, ...phases] = group.steps[at];
  const mark = at < group.warmup ? ", warm-up" : group.slow.includes(at) ? ", slow" : "";
  return [
    element("div", { class: "tip-title", text: `Step ${grouped(String(index))}${mark}: ${write(duration, "duration")}` }),
    ...group.phases.map((phase, place) => tipLine(phase.name, write(phases[place], "duration"), phaseColour(phase.colour))),
  ];
}

function drawSteps(chart, group, most) {
  const { plot } = chart;
  const wide = plot.width / group.steps.length;
  const gap = wide > 4 ? 1 : 0;
  const floor = plot.y + plot.height;
  if (group.warmup) {
    chart.add("rect", { class: "warmup", x: plot.x, y: plot.y, width: (wide * group.warmup).toFixed(1), height: plot.height });
  }
  chart.axisY(most, "duration");
  const paths = group.phases.map(() => "");
  const cut = [];
  group.steps.forEach((step, at) => {
    const x = plot.x + at * wide;
    let below = 0;
    for (let phase = 0; phase < paths.length; phase++) {
      const low = Math.min(below, most), high = Math.min(below + step[2 + phase], most);
      below += step[2 + phase];
      if (high <= low) continue;
      const y = floor - (plot.height * high) / most;
      paths[phase] += `M${x.toFixed(2)} ${y.toFixed(2)}h${Math.max(wide - gap, 0.6).toFixed(2)}v${((plot.height * (high - low)) / most).toFixed(2)}h-${Math.max(wide - gap, 0.6).toFixed(2)}z`;
    }
    if (step[1] > most * 1.0001) cut.push(at);
  });
  group.phases.forEach((phase, at) => {
    const path = chart.add("path", { d: paths[at] });
    path.style.fill = phaseColour(phase.colour);
  });
  const median = floor - (plot.height * group.medianNs) / most;
  if (group.medianNs <= most) chart.add("line", { class: "median", x1: plot.x, x2: plot.x + plot.width, y1: median.toFixed(1), y2: median.toFixed(1) });
  for (const at of group.slow) chart.add("circle", { class: "slow", cx: chart.middle(at).toFixed(1), cy: (floor - (plot.height * Math.min(group.steps[at][1], most)) / most - 5).toFixed(1), r: 2.6 });
  for (const at of cut) {
    const x = chart.middle(at);
    chart.add("path", { class: "cut", d: `M${(x - 3.5).toFixed(1)} ${plot.y + 5}L${x.toFixed(1)} ${plot.y - 1}L${(x + 3.5).toFixed(1)} ${plot.y + 5}z` });
  }
  const every = Math.max(1, Math.ceil(group.steps.length / Math.max(2, Math.floor(plot.width / 90))));
  for (let at = 0; at < group.steps.length; at += every) {
    chart.words(chart.middle(at), floor + 18, grouped(String(group.steps[at][0])), { class: "tick", "text-anchor": "middle" });
  }
}

function stepLegend(group, isCut) {
  const legend = element("div", { class: "legend" });
  for (const phase of group.phases) {
    const dot = element("span", { class: "dot" });
    dot.style.background = phaseColour(phase.colour);
    legend.append(element("span", { class: "legend-entry" }, dot, phase.name));
  }
  const entry = (kind, text) => legend.append(element("span", { class: "legend-entry" }, element("span", { class: kind }), text));
  entry("median-mark", "median");
  if (group.warmup) entry("warmup-mark", "warm-up");
  if (group.slow.length) entry("slow-mark", `${group.slow.length} slow: ${group.slowText}`);
  if (isCut) entry("cut-mark", "higher than drawn");
  return legend;
}

function showSteps(block) {
  const holder = element("div", { class: "panel" });
  const state = { group: 0, whole: false };
  const show = () => {
    const group = block.groups[state.group];
    const most = (state.whole ? group.longestNs : group.tallestNs) || 1;
    const isCut = group.longestNs > group.tallestNs * 1.0001;
    const chart = new Chart({
      summary: `${group.label}. ${group.summary}`,
      height: block.small ? 190 : 320,
      count: group.steps.length,
      cursor: (at) => stepTip(group, at),
      draw: (made) => drawSteps(made, group, most),
    });
    const controls = element("div", { class: "controls" });
    if (block.groups.length > 1) {
      controls.append(
        choice("Steps of", block.groups.map((one, at) => [at, one.label]), state.group, (at) => {
          state.group = at;
          show();
        })
      );
    }
    if (isCut) {
      controls.append(
        button(state.whole ? "Steady height" : "Whole height", {
          onclick: () => {
            state.whole = !state.whole;
            show();
          },
        })
      );
    }
    holder.replaceChildren(
      element("div", { class: "panel-head" }, element("h3", { text: block.small ? "Steps over time" : group.label }), controls),
      chart.holder,
      stepLegend(group, isCut && !state.whole),
      element("p", { class: "note", text: group.summary })
    );
  };
  show();
  return holder;
}

// A line over time, and bars.

function showLine(block) {
  const points = block.points;
  const most = Math.max(...points.map((point) => point[1])) * 1.08 || 1;
  const end = points[points.length - 1][0] || 1;
  const draw = (chart) => {
    const { plot } = chart;
    const x = (ns) => plot.x + (plot.width * ns) / end;
    const y = (value) => plot.y + plot.height * (1 - value / most);
    if (block.warmupNs > 0) {
      chart.add("rect", { class: "warmup", x: plot.x, y: plot.y, width: Math.min(plot.width, x(block.warmupNs) - plot.x).toFixed(1), height: plot.height });
    }
    chart.axisY(most, block.unit);
    const line = points.map((point, at) => `${at ? "L" : "M"}${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}`).join("");
    chart.add("path", { class: "area", d: `${line}L${x(points[points.length - 1][0]).toFixed(1)} ${y(0).toFixed(1)}L${x(points[0][0]).toFixed(1)} ${y(0).toFixed(1)}z` });
    chart.add("path", { class: "line", d: line });
    for (const tick of niceTicks(end, 6)) chart.words(x(tick), plot.y + plot.height + 18, tickText(tick, "duration"), { class: "tick", "text-anchor": "middle" });
    chart.middle = (at) => x(points[at][0]);
  };
  const chart = new Chart({
    summary: block.summary,
    height: 240,
    count: points.length,
    cursor: (at) => [tipLine(`after ${write(points[at][0], "duration")}:`, write(points[at][1], block.unit))],
    draw,
  });
  return element(
    "div",
    { class: "panel" },
    element("div", { class: "panel-head" }, element("h3", { text: block.title })),
    chart.holder,
    element("p", { class: "note", text: block.warmupNs > 0 ? `${block.summary} Shaded: until the warm-up of the steps ended.` : block.summary })
  );
}

function showBars(block) {
  const most = Math.max(...block.values) * 1.08 || 1;
  const chart = new Chart({
    summary: block.summary,
    height: 260,
    count: block.values.length,
    cursor: (at) => [tipLine(`${block.names[at]} ${block.axis}:`, write(block.values[at], block.unit))],
    draw: (made) => {
      const { plot } = made;
      made.axisY(most, block.unit);
      const wide = plot.width / block.values.length;
      const every = Math.max(1, Math.ceil(block.values.length / Math.max(2, Math.floor(plot.width / 80))));
      block.values.forEach((value, at) => {
        const high = (plot.height * value) / most;
        made.add("rect", {
          class: "column",
          x: (plot.x + at * wide + wide * 0.12).toFixed(1),
          y: (plot.y + plot.height - high).toFixed(1),
          width: (wide * 0.76).toFixed(1),
          height: high.toFixed(1),
          rx: Math.min(3, wide * 0.2).toFixed(1),
        });
        if (at % every === 0) made.words(made.middle(at), plot.y + plot.height + 18, block.names[at], { class: "tick", "text-anchor": "middle" });
      });
    },
  });
  return element(
    "div",
    { class: "panel" },
    element("div", { class: "panel-head" }, element("h3", { text: block.title })),
    chart.holder,
    element("p", { class: "note", text: `${block.summary} Along the axis: ${block.axis}.` })
  );
}
