// What each kind of block looks like.

function showLines(block) {
  return element("div", { class: "words" }, ...block.lines.map((line) => element("p", { text: line })));
}

function showNotes(block) {
  return element("div", { class: "notes" }, ...block.lines.map((line) => element("p", { class: "note", text: line })));
}

function showBullets(block) {
  return element("ul", { class: "bullets" }, ...block.lines.map((line) => element("li", { text: line })));
}

function showPairs(block) {
  const rows = block.rows.map(([label, value]) => element("div", {}, element("dt", { text: label }), element("dd", { text: value })));
  return element("dl", { class: "pairs panel" }, ...rows);
}

function showMissing(block) {
  const shown = element("div", { class: "missing" }, element("p", { text: block.text }));
  if (block.command) shown.append(showCode({ text: block.command }));
  return shown;
}

function showCode(block) {
  const copied = button("Copy", {
    class: "copy",
    onclick: async () => {
      await copy(block.text);
      copied.textContent = "Copied";
      setTimeout(() => (copied.textContent = "Copy"), 1500);
    },
  });
  return element("div", { class: "code" }, element("pre", {}, element("code", { text: block.text })), copied);
}

// A file that was opened from disk may not be let at the clipboard.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = element("textarea", { class: "unseen" });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

function showVerdict(block) {
  return element("p", { class: "verdict", text: block.text });
}

function showCards(block) {
  const cards = block.cards.map((card) =>
    element(
      "div",
      { class: "card" },
      element("div", { class: "card-label", text: card.label }),
      element("div", { class: "card-figure" }, element("span", { class: "card-value", text: card.value }), element("span", { class: "card-unit", text: card.unit ? " " + card.unit : "" })),
      element("div", { class: "card-note", text: card.note })
    )
  );
  return element("div", { class: "cards" }, ...cards);
}

function showShares(block) {
  const bar = element("div", { class: "share-bar", role: "img", "aria-label": block.parts.map((part) => `${part.name} ${part.percent}`).join(", ") });
  const legend = element("div", { class: "share-legend" });
  for (const part of block.parts) {
    const piece = element("div", { class: "share", title: `${part.name}: ${part.time}, ${part.percent}` });
    piece.style.flexGrow = String(part.share);
    piece.style.background = phaseColour(part.colour);
    if (part.share > 0.07) piece.append(element("span", { text: part.name }));
    if (part.share > 0) bar.append(piece);
    const dot = element("span", { class: "dot" });
    dot.style.background = phaseColour(part.colour);
    legend.append(shareEntry(part, dot));
  }
  const total = shareEntry(block.total, null);
  total.classList.add("sum");
  legend.append(total);
  return element("div", { class: "panel" }, bar, legend);
}

function shareEntry(part, dot) {
  return element(
    "div",
    { class: "share-entry" },
    element("span", { class: "share-name" }, dot, part.name),
    element("span", { class: "share-time", text: part.time }),
    element("span", { class: "share-percent", text: part.percent })
  );
}

// A table whose figures are written already.
function showTable(block) {
  const head = element("tr", {}, element("th", { scope: "col", text: block.heading }));
  for (const column of block.columns) head.append(element("th", { scope: "col", class: column.left ? null : "figure", text: column.heading }));
  const body = element("tbody");
  for (const row of block.rows) {
    const made = element("tr", { class: row.total ? "total" : null }, element("th", { scope: "row", class: "name", text: row.name, title: row.name }));
    row.cells.forEach((cell, at) => made.append(element("td", { class: block.columns[at].left ? null : "figure", text: cell })));
    body.append(made);
    if (row.details) body.append(element("tr", { class: "details" }, element("td", { colspan: block.columns.length + 1, text: row.details })));
  }
  const rows = () => [[block.heading, ...block.columns.map((column) => column.heading)], ...block.rows.map((row) => [row.name, ...row.cells])];
  const save = button("CSV", { title: "Download this table", onclick: () => downloadCsv(block.key, rows()) });
  return element(
    "div",
    { class: "grid-holder" },
    element("div", { class: "controls" }, element("span", { class: "spring" }), save),
    element("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": block.heading }, element("table", { class: "grid written" }, element("thead", {}, head), body))
  );
}

function showRoofline() {
  const picture = document.getElementById("roofline-picture").content.cloneNode(true);
  return element("div", { class: "panel roofline" }, picture);
}

// A picture with a script of its own, which draws it in the room there is.
function showInlined(block) {
  const picture = document.getElementById(`${block.picture}-picture`).content.cloneNode(true);
  return element("div", { class: "panel inlined" }, picture);
}

function showDownloads(block) {
  const list = element("ul", { class: "files" });
  const save = (table) => {
    const block = blocksOf(table.view).find((one) => one.type === "grid" && one.key === table.key);
    downloadCsv(table.key, new Rows(block).rows());
  };
  for (const table of block.tables) {
    list.append(element("li", {}, button(`${table.key}.csv`, { onclick: () => save(table) }), ` ${grouped(String(table.rows))} rows`));
  }
  return element(
    "div",
    {},
    element("p", { text: "The run as it was recorded: every figure of this page is worked out from it. pyrometer report reads the file." }),
    element("p", {}, button(`Download ${block.file}`, { class: "button main", onclick: () => downloadRun(block.file) })),
    element("h3", { text: "Tables" }),
    element("p", { class: "note", text: "Times in ns, sizes in bytes, shares as fractions. Each table has a button for its file, too." }),
    list
  );
}

const SHOW = {
  heading: (block) => element("h3", { class: "part", text: block.text }),
  text: showLines,
  notes: showNotes,
  bullets: showBullets,
  pairs: showPairs,
  missing: showMissing,
  code: showCode,
  verdict: showVerdict,
  cards: showCards,
  shares: showShares,
  table: showTable,
  grid: (block) => new Grid(block).holder,
  steps: showSteps,
  line: showLine,
  bars: showBars,
  flame: (block) => new Flame(block).holder,
  codemap: (block) => new CodeMap(block).holder,
  roofline: showRoofline,
  inlined: showInlined,
  downloads: showDownloads,
  findings: (block) => showFindings(block),
  topFindings: (block) => showTopFindings(block),
};
