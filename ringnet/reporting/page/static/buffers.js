// What every worker holds at the cursor: of each chunk nothing, a part of the contributions, or all; and what moves.

/** Cells up to which they are a table of words; a picture beyond. */
const MOST_CELLS = 640;
const SYMBOLS = { leaving: "→", arriving: "←" };

class Buffers {
  constructor(place, schedule, look, states) {
    Object.assign(this, { schedule, look, workers: schedule.workers, values: valuesOf(states, schedule) });
    this.small = this.workers * schedule.chunks <= MOST_CELLS;
    if (this.small) this.buildTable(place);
    else this.buildPicture(place);
    look.addEventListener("cursor", () => this.show());
    this.show();
  }

  /** Return what a worker holds of a chunk. */
  state(worker, chunk) {
    const { held, complete, chunks } = this.schedule;
    const number = held[worker * chunks + chunk];
    return number >= complete ? "complete" : number > 0 ? "partial" : "nothing";
  }

  /** Return which cells are on their way, by the number of the cell: from the worker, or to it. */
  moves() {
    const found = new Map();
    const mark = (cell, way) => found.set(cell, found.has(cell) && found.get(cell) !== way ? "both" : way);
    const { src, dst, chunk, count, chunks } = this.schedule;
    for (const row of this.schedule.moving(this.look.cursor)) {
      for (let nth = chunk[row]; nth < chunk[row] + count[row]; nth++) {
        mark(src[row] * chunks + nth, "leaving");
        mark(dst[row] * chunks + nth, "arriving");
      }
    }
    return found;
  }

  show() {
    this.schedule.holdAt(this.look.cursor);
    if (!this.small) {
      this.picture.ask();
      return;
    }
    const moves = this.moves();
    this.cells.forEach((cell, at) => {
      const [worker, chunk] = [Math.floor(at / this.schedule.chunks), at % this.schedule.chunks];
      const state = this.state(worker, chunk);
      const way = moves.get(at) ?? "";
      const words = this.words(worker, chunk, state);
      const arrow = way === "both" ? "⇄" : (SYMBOLS[way] ?? "");
      if (cell.dataset.state !== state) cell.dataset.state = state;
      if (cell.dataset.moving !== way) cell.dataset.moving = way;
      const text = arrow ? `${words} ${arrow}` : words;
      if (cell.textContent !== text) cell.textContent = text;
      cell.title = `worker ${worker}, chunk ${chunk}: ${state}${way ? `, ${way === "both" ? "leaving and arriving" : way}` : ""}`;
    });
  }

  /** Say what a worker holds: the numbers, where they are few and known, else how many contributions. */
  words(worker, chunk, state) {
    const numbers = this.values?.(worker, chunk);
    if (numbers) return numbers;
    if (state === "complete") return "✓";
    if (state === "nothing") return "·";
    return `${this.schedule.held[worker * this.schedule.chunks + chunk]}/${this.schedule.complete}`;
  }

  buildTable(place) {
    const { chunks } = this.schedule;
    const head = Array.from({ length: chunks }, (_, chunk) => element("th", { scope: "col" }, chunks > 4 ? String(chunk) : `chunk ${chunk}`));
    this.cells = Array.from({ length: this.workers * chunks }, () => element("td"));
    const rows = Array.from({ length: this.workers }, (_, worker) =>
      element("tr", {}, element("th", { scope: "row" }, `worker ${worker}`), ...this.cells.slice(worker * chunks, (worker + 1) * chunks)),
    );
    const table = element("table", { class: "buffers" }, element("thead", {}, element("tr", {}, element("td", {}, chunks > 4 ? "chunk" : ""), ...head)), element("tbody", {}, ...rows));
    place.append(element("div", { class: "wide" }, table));
  }

  buildPicture(place) {
    const label = "What each worker holds of each chunk at the cursor: workers down, chunks across";
    this.pixels = new Cells();
    place.append(element("p", { class: "scale" }, `${this.workers} workers down, ${count(this.schedule.chunks)} chunks across; paler is fewer contributions`));
    this.picture = new Picture(
      place,
      { role: "img", "aria-label": label },
      () => clamp(this.workers * 6, 120, 420),
      (context, width, height) => this.draw(context, width, height),
    );
    this.picture.canvas.addEventListener("pointermove", (event) => {
      const { x, y } = this.picture.place(event);
      const worker = Math.floor((y / this.picture.height) * this.workers);
      const chunk = Math.floor((x / this.picture.width) * this.schedule.chunks);
      if (worker < 0 || worker >= this.workers || chunk < 0 || chunk >= this.schedule.chunks) return;
      const state = this.state(worker, chunk);
      const way = this.moves().get(worker * this.schedule.chunks + chunk);
      tip.show(event, [`worker ${worker}, chunk ${chunk}`, `${state}, ${this.words(worker, chunk, state)}${way ? `, ${way}` : ""}`]);
    });
    this.picture.canvas.addEventListener("pointerleave", () => tip.hide());
  }

  draw(context, width, height) {
    const { chunks, held, complete } = this.schedule;
    const pixels = this.pixels.clear(chunks, this.workers);
    const [none, part, all, moving] = [inks.pale, inks.partial, inks.complete, inks.cursor].map(pixelOf);
    for (let cell = 0; cell < pixels.length; cell++) {
      const share = held[cell] / complete;
      // The fewer contributions, the fainter: never as faint as none.
      pixels[cell] = share >= 1 ? all | (255 << 24) : share > 0 ? part | ((70 + 150 * share) << 24) : none | (90 << 24);
    }
    for (const cell of this.moves().keys()) {
      if (cell < pixels.length) pixels[cell] = moving | (255 << 24);
    }
    this.pixels.paint(context, 0, 0, width, height);
  }
}

/** Return what gives the numbers that a worker holds of a chunk, where the buffers after each step are known. */
function valuesOf(states, schedule) {
  const total = schedule.sizes?.reduce((sum, size) => sum + size, 0);
  const heads = states?.columns.filter((one) => /^e\d+$/.test(one.name)) ?? [];
  if (!total || heads.length !== total || Math.max(...schedule.sizes) > 4) return null;
  const starts = [];
  schedule.sizes.reduce((start, size) => (starts.push(start), start + size), 0);
  const rows = new Map();
  for (let row = 0; row < states.length; row++) {
    const step = states.cell("phase", row) === "start" ? "start" : `${states.cell("phase", row)} ${states.cell("step", row)}`;
    rows.set(`${step} ${states.cell("worker", row)}`, row);
  }
  const due = lastOfSteps(schedule);
  return (worker, chunk) => {
    const last = schedule.last[worker * schedule.chunks + chunk];
    const step = last < 0 ? "start" : `${schedule.phases[schedule.phase[last]]} ${schedule.step[last]}`;
    const row = rows.get(`${step} ${worker}`);
    // Of several that one step brings to a chunk, the table has what all of them make.
    if (row === undefined || (last >= 0 && due.get(`${step} ${worker} ${chunk}`) > schedule.at)) return null;
    const own = heads.slice(starts[chunk], starts[chunk] + schedule.sizes[chunk]);
    return own.map((head) => digits(cellOf(head, row))).join(" ");
  };
}

/** Return when the last transfer of each step, worker and chunk is applied. */
function lastOfSteps(schedule) {
  const found = new Map();
  for (let row = 0; row < schedule.length; row++) {
    for (let nth = 0; nth < schedule.count[row]; nth++) {
      const key = `${schedule.phases[schedule.phase[row]]} ${schedule.step[row]} ${schedule.dst[row]} ${schedule.chunk[row] + nth}`;
      found.set(key, Math.max(found.get(key) ?? 0, schedule.applied[row]));
    }
  }
  return found;
}
