// Tables and trees as they are seen: sorted, searched, opened and closed, by mouse and by keyboard. Of many
// rows only those in sight are there.

const ROW_HEIGHT = 30;
const MOST_ROWS_AT_ONCE = 200;
const MOST_PRINTED = 100;
const COLUMN_WIDTHS = { text: 128, share: 68, duration: 82, bytes: 84, count: 82, flops: 74 };
const grids = [];

class Grid extends Rows {
  constructor(block) {
    super(block);
    this.visible = [];
    this.active = 0;
    this.printing = false;
    this.first = -1;
    this.make();
    this.refresh();
    grids.push(this);
  }

  // The parts of the page.

  make() {
    this.body = element("tbody");
    this.status = element("span", { class: "status", role: "status" });
    const columns = this.block.columns;
    const widths = columns.map((column) => Math.max(column.width || 0, COLUMN_WIDTHS[column.unit] || 74, Math.min(160, 38 + 7 * column.heading.length)));
    const named = this.isTree ? 230 : 200;
    const table = element(
      "table",
      {
        class: "grid",
        role: this.isTree ? "treegrid" : null,
        "aria-label": this.block.label || this.block.heading,
        onkeydown: (event) => this.pressed(event),
        onclick: (event) => this.clicked(event),
      },
      element("colgroup", {}, element("col"), ...widths.map((width) => this.sized(element("col"), width))),
      element("thead", {}, element("tr", {}, this.header(-1), ...columns.map((_, at) => this.header(at)))),
      this.body
    );
    table.style.minWidth = named + widths.reduce((sum, width) => sum + width, 0) + "px";
    if (this.block.total) table.append(this.total());
    this.table = table;
    this.scroller = element("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": this.block.heading }, table);
    this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    this.holder = element("div", { class: "grid-holder" }, this.controls(), this.scroller);
    for (const note of this.block.notes || []) this.holder.append(element("p", { class: "note", text: note }));
  }

  sized(made, width) {
    made.style.width = width + "px";
    return made;
  }

  header(at) {
    const column = at < 0 ? { heading: this.block.heading, unit: "text" } : this.block.columns[at];
    const cell = element("th", { scope: "col", class: column.unit === "text" ? null : "figure" });
    cell.append(
      element("button", {
        type: "button",
        class: "sort",
        text: column.heading,
        title: column.spelled ? column.spelled : null,
        onclick: () => this.sortBy(at),
      })
    );
    return cell;
  }

  controls() {
    const controls = element("div", { class: "controls" });
    if (this.count > 5) {
      this.input = element("input", {
        type: "search",
        class: "search",
        placeholder: `Search ${grouped(String(this.count))} rows`,
        "aria-label": `Search ${this.block.heading}`,
        oninput: (event) => {
          this.search(event.target.value);
          this.refresh();
        },
      });
      controls.append(this.input);
    }
    if (this.isTree && this.children.size) {
      controls.append(
        button("Expand all", { onclick: () => this.openAll(true) }),
        button("Collapse all", { onclick: () => this.openAll(false) })
      );
    }
    controls.append(this.status, element("span", { class: "spring" }), button("CSV", { title: "Download this table", onclick: () => this.save() }));
    return controls;
  }

  total() {
    const { name, cells } = this.block.total;
    const row = element("tr", { class: "total" }, element("th", { scope: "row", text: name }));
    this.block.columns.forEach((column, at) => row.append(element("td", { class: column.unit === "text" ? null : "figure", text: cells[at] || "" })));
    return element("tfoot", {}, row);
  }

  // Changes.

  sortBy(column) {
    const isText = column < 0 || this.block.columns[column].unit === "text";
    const again = this.sorted && this.sorted.column === column;
    this.sorted = { column, descending: again ? !this.sorted.descending : !isText };
    this.refresh();
  }

  openAll(open) {
    this.opened = new Set(open ? this.children.keys() : []);
    this.refresh();
  }

  toggle(row, open) {
    if (!this.below(row).length) return;
    if (open) this.opened.add(row);
    else this.opened.delete(row);
    this.refresh();
  }

  refresh() {
    this.visible = this.list();
    this.places = null;
    if (this.active >= this.visible.length) this.active = 0;
    const heads = this.table.tHead.rows[0].cells;
    for (let at = 0; at < heads.length; at++) {
      const isSorted = this.sorted && this.sorted.column === at - 1;
      heads[at].setAttribute("aria-sort", !isSorted ? "none" : this.sorted.descending ? "descending" : "ascending");
    }
    this.status.textContent = this.query ? `${grouped(String(this.found))} found` : "";
    this.table.setAttribute("aria-rowcount", String(this.visible.length + 1));
    this.first = -1;
    this.draw();
  }

  get windowed() {
    return !this.printing && this.visible.length > MOST_ROWS_AT_ONCE;
  }

  draw() {
    const windowed = this.windowed;
    this.scroller.classList.toggle("windowed", windowed);
    const room = Math.ceil((this.scroller.clientHeight || 600) / ROW_HEIGHT);
    const from = windowed ? Math.max(0, Math.floor(this.scroller.scrollTop / ROW_HEIGHT) - 10) : 0;
    const start = from - (from % 10);
    if (windowed && start === this.first) return;
    this.first = start;
    const most = this.printing ? MOST_PRINTED : windowed ? room + 30 : this.visible.length;
    const end = Math.min(start + most, this.visible.length);
    const hadFocus = this.body.contains(document.activeElement);
    const rows = document.createDocumentFragment();
    if (start) rows.append(this.spacer(start));
    for (let place = start; place < end; place++) rows.append(...this.rowsAt(place));
    if (windowed && end < this.visible.length) rows.append(this.spacer(this.visible.length - end));
    if (this.printing && end < this.visible.length) rows.append(this.leftOut(this.visible.length - end));
    if (!this.visible.length) rows.append(this.wide(this.query ? "Nothing found." : "No rows."));
    this.body.replaceChildren(rows);
    if (hadFocus) this.focusActive();
  }

  spacer(rows) {
    const made = element("tr", { class: "spacer", "aria-hidden": "true" }, element("td", { colspan: this.block.columns.length + 1 }));
    made.firstChild.style.height = rows * ROW_HEIGHT + "px";
    return made;
  }

  wide(text) {
    return element("tr", { class: "wide" }, element("td", { colspan: this.block.columns.length + 1, text }));
  }

  leftOut(rows) {
    return this.wide(`${grouped(String(rows))} more rows are not printed; the CSV file has them.`);
  }

  rowsAt(place) {
    const row = this.visible[place];
    const made = element("tr", { "data-place": place, "aria-rowindex": place + 2 });
    if (this.isTree) {
      const hasBelow = this.below(row).length > 0;
      setAll(made, {
        "aria-level": this.depths[row] + 1,
        "aria-expanded": hasBelow ? String(this.isOpen(row)) : null,
        tabindex: place === this.active ? "0" : "-1",
      });
    }
    if (this.query && this.matches(row)) made.classList.add("found");
    made.append(this.nameCell(row));
    this.block.columns.forEach((column) => made.append(this.cell(column, row)));
    const details = this.block.details && this.block.details[row];
    return details ? [made, this.detail(details)] : [made];
  }

  detail(text) {
    const made = this.wide(text);
    made.className = "details";
    return made;
  }

  nameCell(row) {
    const cell = element("th", { scope: "row", class: "name", title: this.fullNames[row] });
    const inner = element("span", { class: "name-text" });
    if (this.isTree) {
      const has = this.below(row).length > 0;
      cell.style.paddingLeft = 10 + 16 * Math.min(this.depths[row], 24) + "px";
      cell.append(element("span", { class: has ? "twist" : "twist none", "aria-hidden": "true" }));
    }
    if (this.block.colours) {
      const dot = element("span", { class: "dot" });
      dot.style.background = phaseColour(this.block.colours[row]);
      cell.append(dot);
    }
    inner.textContent = this.block.names[row];
    cell.append(inner);
    return cell;
  }

  cell(column, row) {
    const value = column.values[row];
    const text = (column.texts && column.texts[row]) || write(value, column.unit);
    const link = column.links && column.links[row];
    if (link) return element("td", { title: text }, element("a", { href: link, text }));
    if (column.unit === "text") return element("td", { text, title: text });
    const cell = element("td", { class: value === null ? "figure unknown" : "figure", text });
    if (column.bar && value > 0) {
      cell.classList.add("bar");
      cell.style.setProperty("--share", Math.min(100, 100 * value).toFixed(1) + "%");
    }
    return cell;
  }

  // By mouse and keyboard.

  clicked(event) {
    const made = event.target.closest("tbody tr[data-place]");
    if (!made || !this.isTree || window.getSelection().toString()) return;
    this.active = Number(made.dataset.place);
    const row = this.visible[this.active];
    this.toggle(row, !this.isOpen(row));
    this.focusActive();
  }

  pressed(event) {
    if (!this.isTree || !event.target.closest("tbody") || event.altKey || event.ctrlKey || event.metaKey) return;
    const row = this.visible[this.active];
    const last = this.visible.length - 1;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW_HEIGHT) - 2);
    const moves = {
      ArrowDown: () => this.move(Math.min(last, this.active + 1)),
      ArrowUp: () => this.move(Math.max(0, this.active - 1)),
      PageDown: () => this.move(Math.min(last, this.active + page)),
      PageUp: () => this.move(Math.max(0, this.active - page)),
      Home: () => this.move(0),
      End: () => this.move(last),
      Enter: () => this.toggle(row, !this.isOpen(row)),
      " ": () => this.toggle(row, !this.isOpen(row)),
      ArrowRight: () => (this.isOpen(row) ? this.move(Math.min(last, this.active + 1)) : this.toggle(row, true)),
      ArrowLeft: () => (this.isOpen(row) && this.opened.has(row) ? this.toggle(row, false) : this.moveUp(row)),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
    this.focusActive();
  }

  moveUp(row) {
    const parent = this.block.parents[row];
    if (parent >= 0) this.move(this.visible.indexOf(parent));
  }

  move(place) {
    this.active = place;
    if (this.windowed) {
      const head = this.table.tHead.offsetHeight;
      const top = place * ROW_HEIGHT;
      const { scrollTop, clientHeight } = this.scroller;
      if (top < scrollTop) this.scroller.scrollTop = top;
      else if (top + ROW_HEIGHT * 2 + head > scrollTop + clientHeight)
        this.scroller.scrollTop = top + ROW_HEIGHT * 2 + head - clientHeight;
    }
    this.first = -1;
    this.draw();
  }

  focusActive() {
    const made = this.body.querySelector(`tr[data-place="${this.active}"]`);
    if (!made) return;
    for (const other of this.body.querySelectorAll('tr[tabindex="0"]')) other.tabIndex = -1;
    made.tabIndex = 0;
    made.focus({ preventScroll: this.windowed });
  }

  // On paper and in files.

  print(printing) {
    this.printing = printing;
    this.first = -1;
    this.draw();
  }

  save() {
    downloadCsv(this.block.key, this.rows());
  }
}
