// Tables that sort: of thousands of rows only those in sight are made, so that a hundred thousand cost no more than ten.

const ROW = 26;
/** Rows that a table shows without scrolling, and that paper gets. */
const IN_SIGHT = 14;
const ON_PAPER = 60;

class Sorted {
  constructor(place, table) {
    this.table = table;
    this.order = Uint32Array.from({ length: table.length }, (_, row) => row);
    this.by = null;
    this.down = false;
    this.body = element("tbody");
    this.heads = table.columns.map((column, at) => {
      const button = element("button", { type: "button", click: () => this.sort(at) }, column.name);
      return element("th", { scope: "col", title: column.meaning, "aria-sort": "none" }, button);
    });
    const shown = element("table", { class: "rows" }, element("thead", {}, element("tr", {}, ...this.heads)), this.body);
    this.box = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `table ${table.name}` }, shown);
    this.box.addEventListener("scroll", () => this.show(), { passive: true });
    if (table.length <= IN_SIGHT) this.box.classList.add("short");
    place.append(this.box);
    if (table.of > table.length) place.append(element("p", { class: "missing" }, `the first ${count(table.length)} of ${count(table.of)} rows; ${table.name}.csv has all`));
    this.show();
  }

  /** Sort by a column, upwards; once more, downwards. Empty cells come last, and rows alike stay in their order. */
  sort(at) {
    this.down = this.by === at && !this.down;
    this.by = at;
    const column = this.table.columns[at];
    const keys = keysOf(column, this.table.length);
    const sign = this.down ? -1 : 1;
    const last = (key) => key === null || Number.isNaN(key);
    this.order.sort((one, other) => {
      const [a, b] = [keys[one], keys[other]];
      if (last(a) || last(b)) return last(a) - last(b) || one - other;
      return sign * (a < b ? -1 : a > b ? 1 : 0) || one - other;
    });
    this.heads.forEach((head, number) => {
      head.setAttribute("aria-sort", number !== at ? "none" : this.down ? "descending" : "ascending");
    });
    this.box.scrollTop = 0;
    this.show();
  }

  show(first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - 8), number = IN_SIGHT + 24) {
    const end = Math.min(this.table.length, first + number);
    const rows = [];
    for (let at = first; at < end; at++) rows.push(this.row(this.order[at]));
    const spacer = (height) => (height > 0 ? [element("tr", { class: "spacer" }, spacerCell(height, this.heads.length))] : []);
    this.body.replaceChildren(...spacer(first * ROW), ...rows, ...spacer((this.table.length - end) * ROW));
  }

  row(row) {
    const cells = this.table.columns.map((column) => {
      const value = cellOf(column, row);
      const text = written(column.name, value);
      const number = typeof value === "number";
      return element("td", { class: number ? "number" : null, title: number && text !== String(value) ? value : null }, text);
    });
    return element("tr", {}, ...cells);
  }

  /** Show what paper gets: the first rows in their order. */
  print() {
    this.show(0, ON_PAPER);
    this.box.classList.add("printed");
  }

  unprint() {
    this.box.classList.remove("printed");
    this.show();
  }
}

function spacerCell(height, columns) {
  const cell = element("td", { colspan: columns });
  cell.style.height = `${height}px`;
  return cell;
}

/** Return what a column is sorted by: numbers as they are, texts with their numbers in order: 3->4 before 10->11. */
function keysOf(column, length) {
  if (!column.values) return column.array;
  const places = column.values.map((_, at) => at);
  const order = new Intl.Collator("en", { numeric: true });
  places.sort((one, other) => order.compare(column.values[one], column.values[other]));
  const rank = new Array(places.length);
  places.forEach((value, at) => (rank[value] = column.values[value] === NOTHING ? null : at));
  return Array.from({ length }, (_, row) => rank[column.array[row]]);
}

/** Add each table in a fold of its own, which is filled when it is opened. */
function addTables(place, tables) {
  const made = [];
  for (const table of tables.values()) {
    const few = table.length === 1 ? turned(table) : table;
    const rows = table.length === 1 ? "one row" : `${count(table.of)} rows`;
    const fold = element("details", { "data-table": table.name }, element("summary", {}, `${table.name} `, element("small", {}, rows)));
    let own = null;
    fold.addEventListener("toggle", () => {
      if (!fold.open || own) return;
      own = new Sorted(fold, few);
      made.push(own);
    });
    place.append(fold);
  }
  return made;
}

/** Return a table of one row as a table with a row for each column that says anything, and what that means. */
function turned(table) {
  const known = table.columns.filter((column) => cellOf(column, 0) !== null);
  const text = (values) => ({ array: Uint32Array.from(values.keys()), values });
  const columns = [
    { name: "what", meaning: "", ...text(known.map((column) => column.name)) },
    { name: "value", meaning: "", ...text(known.map((column) => written(column.name, cellOf(column, 0)))) },
    { name: "meaning", meaning: "", ...text(known.map((column) => column.meaning)) },
  ];
  return { name: table.name, length: known.length, of: known.length, columns };
}
