// Lines over whatever a sweep or a comparison varies, and a map of who is fastest; each point says what it is.

const LEFT = 76;
const RIGHT = 30;
const TOP = 10;
const BOTTOM = 42;
const HEIGHT = 340;
/** From which ratio on numbers are drawn on a logarithmic axis. */
const WIDE = 20;
/** Shapes of points, so that lines are told apart without their colours. */
const SHAPES = ["M-4,0A4,4 0 1,0 4,0A4,4 0 1,0 -4,0Z", "M-3.5,-3.5H3.5V3.5H-3.5Z", "M0,-5L5,4H-5Z", "M0,-5L5,0L0,5L-5,0Z", "M0,5L5,-4H-5Z"];

/** An axis: where a value is between two ends, and the values that are named. */
class Axis {
  constructor(values, from, to, room, name) {
    const known = values.filter((value) => Number.isFinite(value));
    Object.assign(this, { from, to, name });
    const positive = known.filter((value) => value > 0);
    this.log = positive.length === known.length && Math.max(...known) / Math.min(...known) > WIDE;
    this.low = Math.min(...known);
    this.high = Math.max(...known);
    if (!this.log && this.low > 0 && from > to) this.low = 0;
    if (this.low === this.high) [this.low, this.high] = [this.low * 0.9 - (this.low === 0), this.high * 1.1 + (this.high === 0)];
    this.marks = this.log ? this.powers(room) : ticks(this.low, this.high, room).values;
  }

  scale(value) {
    return this.log ? Math.log(value / this.low) / Math.log(this.high / this.low) : (value - this.low) / (this.high - this.low);
  }

  at(value) {
    return this.from + this.scale(value) * (this.to - this.from);
  }

  /** Return powers of two for bytes and counts, else of ten, as many as there is room for. */
  powers(room) {
    const base = /bytes|n_workers/.test(this.name) ? 2 : 10;
    const [first, last] = [this.low, this.high].map((value) => Math.log(value) / Math.log(base));
    const step = Math.max(1, Math.ceil((last - first) / room));
    const found = [];
    for (let power = Math.ceil(first - 1e-9); power <= last + 1e-9; power += step) found.push(base ** power);
    return found.length > 1 ? found : [this.low, this.high];
  }
}

class Curves {
  constructor(place, told, tables, array) {
    Object.assign(this, { told, table: tables.get(told.of), array });
    this.hidden = new Set();
    const option = (one, at) => element("option", { value: at }, one.title ?? one.label);
    const change = () => this.draw();
    this.chart = element("select", { change }, ...told.charts.map(option));
    this.measure = element("select", { change }, ...told.measures.map(option));
    const bar = element("div", { class: "tools" }, element("label", {}, "chart ", this.chart), element("label", {}, "shown ", this.measure));
    this.place = element("div", { class: "chart" });
    this.legend = element("div", { class: "legend" });
    place.append(bar, this.place, this.legend);
    new ResizeObserver(() => this.place.clientWidth !== this.width && this.draw()).observe(this.place);
    this.draw();
  }

  draw() {
    const chart = this.told.charts[this.chart.value];
    const measure = this.told.measures[this.measure.value];
    this.width = Math.max(280, this.place.clientWidth);
    const at = this.array(chart.at);
    const up = this.table.array(measure.column);
    const lines = chart.lines.map((one) => ({ ...one, rows: one.rows.filter((row) => Number.isFinite(at[row]) && Number.isFinite(up[row])) }));
    const seen = lines.filter((one) => !this.hidden.has(one.label));
    const rows = seen.flatMap((one) => one.rows);
    if (rows.length) {
      const beside = measure.beside.map((one) => ({ ...one, values: this.table.array(one.column) }));
      const axes = {
        x: new Axis(rows.map((row) => at[row]), LEFT, this.width - RIGHT, this.width / 90, chart.column),
        y: new Axis([up, ...beside.map((one) => one.values)].flatMap((values) => rows.map((row) => values[row])), HEIGHT - BOTTOM, TOP, HEIGHT / 60, measure.column),
      };
      this.place.replaceChildren(this.picture(chart, measure, seen, { at, up, beside, ...axes }));
    } else this.place.replaceChildren(element("p", { class: "missing" }, "no line is chosen"));
    this.legend.replaceChildren(...this.keys(lines, measure));
  }

  picture(chart, measure, lines, where) {
    const { x, y, at, up, beside } = where;
    const name = `${measure.label} over ${chart.label}`;
    const svg = drawn("svg", { viewBox: `0 0 ${this.width} ${HEIGHT}`, width: this.width, height: HEIGHT, role: "img", "aria-label": name });
    this.axes(svg, chart, measure, where);
    for (const one of lines) {
      const look = { stroke: `var(--chunk-${one.style % MANY.chunk})`, fill: "none", "stroke-width": 2 };
      const path = (values) => pathOf(one.rows.filter((row) => values[row] > 0 || !y.log).map((row) => [x.at(at[row]), y.at(values[row])]));
      for (const { values, column } of beside) {
        svg.append(drawn("path", { ...look, d: path(values), "stroke-width": 1, "stroke-dasharray": column === "closed_form_s" ? "5 4" : "1 4" }));
      }
      svg.append(drawn("path", { ...look, d: path(up) }));
      for (const row of one.rows) {
        const point = drawn("path", { d: SHAPES[one.style % SHAPES.length], transform: `translate(${x.at(at[row])},${y.at(up[row])})`, fill: look.stroke, class: "point", tabindex: -1 });
        point.addEventListener("pointerenter", (event) => tip.show(event, this.words(chart, one, row, at[row])));
        point.addEventListener("pointerleave", () => tip.hide());
        svg.append(point);
      }
    }
    return svg;
  }

  axes(svg, chart, measure, { x, y }) {
    const text = (words, attributes) => svg.append(drawn("text", { fill: "currentColor", "font-size": 12, ...attributes }, words));
    for (const value of y.marks) {
      svg.append(drawn("line", { x1: LEFT, x2: this.width - RIGHT, y1: y.at(value), y2: y.at(value), stroke: "var(--pale)" }));
      text(written(measure.column, value), { x: LEFT - 6, y: y.at(value) + 4, "text-anchor": "end" });
    }
    const marks = chart.words ? chart.words.map((_, at) => at) : x.marks;
    for (const value of marks) {
      svg.append(drawn("line", { x1: x.at(value), x2: x.at(value), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 4, stroke: "currentColor" }));
      text(this.settingOf(chart, value), { x: x.at(value), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" });
    }
    svg.append(drawn("line", { x1: LEFT, x2: this.width - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM, stroke: "currentColor" }));
    text(chart.label, { x: (LEFT + this.width) / 2, y: HEIGHT - 5, "text-anchor": "middle" });
  }

  settingOf(chart, value) {
    if (chart.words) return chart.words[value] ?? "";
    const forms = { bytes, seconds, bytes_per_second: rate };
    return forms[chart.kind] ? forms[chart.kind](value) : written(chart.column, value);
  }

  words(chart, one, row, at) {
    const told = this.told.measures.map(({ column, label }) => `${label} ${written(column, this.table.cell(column, row))}`);
    const setting = `${chart.label} ${this.settingOf(chart, at)}`;
    return [...(one.label ? [one.label] : []), setting, ...told];
  }

  /** Return a button for each line, which hides it, and what the thin lines are. */
  keys(lines, measure) {
    const named = lines.filter((one) => one.label).map((one) => {
      const mark = drawn("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14 }, drawn("path", { d: SHAPES[one.style % SHAPES.length], fill: `var(--chunk-${one.style % MANY.chunk})` }));
      const click = () => {
        if (!this.hidden.delete(one.label)) this.hidden.add(one.label);
        this.draw();
      };
      return element("button", { type: "button", "aria-pressed": String(!this.hidden.has(one.label)), click }, mark, ` ${one.label}`);
    });
    const thin = measure.beside.map((one) => element("span", {}, `${one.column === "closed_form_s" ? "- - -" : "· · ·"} ${one.label}`));
    return [...named, ...thin];
  }
}

function pathOf(points) {
  return points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");
}

/** Add the map of winners: numbers of workers down, sizes across, each cell with the letter of its winner. */
function addWinners(place, told, table) {
  const letters = told.names.map((_, at) => String.fromCharCode(65 + (at % 26)));
  const times = new Map();
  for (let row = 0; row < table.length; row++) {
    const key = `${table.cell("n_workers", row)} ${table.cell("message_bytes", row)}`;
    if (!times.has(key)) times.set(key, []);
    times.get(key).push([table.cell("algorithm", row), table.cell("makespan_s", row)]);
  }
  const cell = (n, size, winner) => {
    const known = (times.get(`${n} ${size}`) ?? []).sort((one, other) => one[1] - other[1]);
    const box = element("td", { class: winner < 0 ? "guess" : `winner winner-${winner % MANY.chunk}` }, winner < 0 ? "?" : letters[winner]);
    const use = winner < 0 ? "a guess: no ground to choose" : `use ${told.names[winner]}`;
    const lines = [`N = ${n}, ${bytes(size)}: ${use}`, ...known.slice(0, 5).map(([name, time]) => `${name} ${seconds(time)}`)];
    box.addEventListener("pointermove", (event) => tip.show(event, lines));
    box.addEventListener("pointerleave", () => tip.hide());
    return box;
  };
  const head = told.sizes.map((size, at) => element("th", { scope: "col" }, at % 4 ? "" : bytes(size)));
  const rows = told.workers.map((n, row) => element("tr", {}, element("th", { scope: "row" }, `N = ${n}`), ...told.sizes.map((size, at) => cell(n, size, told.cells[row][at]))));
  const ahead = new Set(told.cells.flat());
  const names = told.names.map((name, at) => (ahead.has(at) ? element("span", {}, element("i", { class: `winner winner-${at % MANY.chunk}` }, letters[at]), ` ${name}`) : ""));
  place.append(
    element("div", { class: "wide" }, element("table", { class: "winners" }, element("thead", {}, element("tr", {}, element("td"), ...head)), element("tbody", {}, ...rows))),
    element("p", { class: "legend" }, ...names),
  );
}
