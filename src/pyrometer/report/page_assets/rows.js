// Rows of a table or a tree: in what order, and which of them are open or found.

const OPENED_AT_FIRST = 40;
const UNITS_IN_FILES = { duration: "ns", bytes: "bytes", share: "fraction" };

class Rows {
  constructor(block) {
    this.block = block;
    this.count = block.names.length;
    this.isTree = Boolean(block.parents);
    this.fullNames = block.fullNames || block.names;
    this.children = null;
    this.opened = new Set();
    this.sorted = block.sort === undefined ? null : { column: block.sort, descending: true };
    this.query = "";
    this.kept = null;
    if (this.isTree) this.readTree();
  }

  readTree() {
    const parents = this.block.parents;
    this.roots = [];
    this.children = new Map();
    this.depths = new Int32Array(this.count);
    for (let row = 0; row < this.count; row++) {
      const parent = parents[row];
      if (parent < 0) this.roots.push(row);
      else {
        this.depths[row] = this.depths[parent] + 1;
        if (this.children.has(parent)) this.children.get(parent).push(row);
        else this.children.set(parent, [row]);
      }
    }
    // Level by level while little enough is open.
    let shown = this.roots.length;
    let level = this.roots;
    while (!this.block.closed && level.length && shown < OPENED_AT_FIRST) {
      const next = [];
      for (const row of level) {
        const below = this.children.get(row) || [];
        const isLoneRoot = level === this.roots && level.length === 1;
        if (!below.length || (shown + below.length > OPENED_AT_FIRST && !isLoneRoot)) continue;
        this.opened.add(row);
        shown += below.length;
        next.push(...below);
      }
      level = next;
    }
  }

  below(row) {
    return (this.isTree && this.children.get(row)) || [];
  }

  ordered(rows) {
    if (!this.sorted) return rows;
    const values = this.sorted.column < 0 ? this.fullNames : this.block.columns[this.sorted.column].values;
    const sign = this.sorted.descending ? -1 : 1;
    return [...rows].sort((one, other) => {
      const a = values[one], b = values[other];
      if (a === b) return one - other;
      if (a === null || a === undefined) return 1;
      if (b === null || b === undefined) return -1;
      return sign * (typeof a === "string" ? a.localeCompare(b) : a - b) || one - other;
    });
  }

  search(query) {
    this.query = query.trim().toLowerCase();
    this.kept = null;
    this.found = 0;
    if (this.query) {
      this.kept = new Set();
      for (let row = 0; row < this.count; row++) {
        if (!this.matches(row)) continue;
        this.found++;
        for (let at = row; at >= 0 && !this.kept.has(at); at = this.isTree ? this.block.parents[at] : -1) this.kept.add(at);
      }
    }
  }

  // What is searched for in quotes is the whole of a name or text.
  matches(row) {
    const whole = /^"(.+)"$/.exec(this.query);
    const isFound = (text) => (whole ? text.toLowerCase() === whole[1] : text.toLowerCase().includes(this.query));
    if (isFound(this.fullNames[row])) return true;
    return this.block.columns.some((column) => column.unit === "text" && column.values[row] && isFound(column.values[row]));
  }

  // Rows in order, as far as all above them are open.
  list() {
    const roots = this.isTree ? this.roots : Array.from({ length: this.count }, (_, row) => row);
    const isKept = (row) => !this.kept || this.kept.has(row);
    const listed = [];
    const waiting = this.ordered(roots.filter(isKept)).reverse();
    while (waiting.length) {
      const row = waiting.pop();
      listed.push(row);
      if (!this.isTree || !this.isOpen(row)) continue;
      const inside = this.below(row).filter(isKept);
      // What is not a match itself but in one can be opened all the same.
      waiting.push(...this.ordered(inside.length || !this.opened.has(row) ? inside : this.below(row)).reverse());
    }
    return listed;
  }

  isOpen(row) {
    return this.opened.has(row) || (this.kept !== null && this.below(row).some((child) => this.kept.has(child)));
  }

  // As they stand in a file, with the columns' headings first.
  rows() {
    const headings = this.block.columns.map((column) => {
      const unit = UNITS_IN_FILES[column.unit];
      return (column.spelled || column.heading) + (unit ? ` (${unit})` : "");
    });
    const listed = this.isTree || this.query ? this.everything() : this.list();
    return [
      [this.block.heading, ...(this.isTree ? ["depth"] : []), ...headings],
      ...listed.map((row) => [
        this.fullNames[row],
        ...(this.isTree ? [this.depths[row]] : []),
        ...this.block.columns.map((column) => column.values[row]),
      ]),
    ];
  }

  everything() {
    return Array.from({ length: this.count }, (_, row) => row).filter((row) => !this.kept || this.kept.has(row));
  }
}
