// The schedule of a run: what each transfer does when, who holds what at a time, and which transfers are looked at.

const COPY = "copy";

/** What the page looks at: a time, and which worker, phase and link. Whoever shows it is told of each change. */
class Look extends EventTarget {
  constructor(end) {
    super();
    this.end = end;
    this.cursor = 0;
    this.filter = { worker: null, phase: null, link: null };
  }

  moveTo(time) {
    this.cursor = clamp(time, 0, this.end);
    this.dispatchEvent(new Event("cursor"));
  }

  choose(changes) {
    Object.assign(this.filter, changes);
    this.dispatchEvent(new Event("filter"));
  }

  /** Choose, or choose no more what is chosen already. */
  toggle(key, value) {
    this.choose({ [key]: this.filter[key] === value ? null : value });
  }
}

class Schedule {
  constructor(told, tables, workers, array) {
    const rows = tables.get("transfers");
    this.length = rows.length;
    for (const name of ["posted", "started", "sent", "arrived", "applied"]) this[name] = rows.array(`${name}_s`);
    for (const name of ["src", "dst", "chunk", "step", "bytes", "channel"]) this[name] = rows.array(name);
    this.phases = rows.values("phase");
    this.phase = rows.array("phase");
    this.workers = workers;
    this.again = told.again;
    this.chunks = told.chunks;
    this.why = told.why ?? "";
    const largest = (numbers) => numbers.reduce((most, number) => Math.max(most, number), 0);
    this.nodes = Math.max(workers, largest(this.src) + 1, largest(this.dst) + 1);
    this.end = largest(this.applied) || 1;
    this.routes = routesOf(tables);
    this.kept = new Uint8Array(this.length).fill(1);
    if (!this.why) this.hold(told, rows, array);
    this.moments = Float64Array.from(new Set([0, ...this.started, ...this.arrived, ...this.applied])).sort();
  }

  /** Take what everybody holds at the start, and what each transfer adds to or replaces, in order of time. */
  hold(told, rows, array) {
    this.complete = told.complete;
    this.first = array(told.first);
    this.carried = array(told.carried);
    this.count = array(told.count);
    this.sizes = array(told.sizes);
    const copy = rows.values("op").indexOf(COPY);
    this.copies = Uint8Array.from(rows.array("op"), (op) => (op === copy ? 1 : 0));
    this.order = Uint32Array.from(this.applied.keys()).sort(
      (one, other) => this.applied[one] - this.applied[other] || one - other,
    );
    this.rewind();
  }

  rewind() {
    this.held = Int32Array.from(this.first);
    this.last = new Int32Array(this.first.length).fill(-1);
    this.next = 0;
    this.at = -Infinity;
  }

  /** Bring `held`, contributions by worker and chunk, and `last`, the transfer that changed it, to a time. */
  holdAt(time) {
    if (time < this.at) this.rewind();
    this.at = time;
    for (; this.next < this.length && this.applied[this.order[this.next]] <= time; this.next++) {
      const row = this.order[this.next];
      for (let nth = 0; nth < this.count[row]; nth++) {
        const cell = this.dst[row] * this.chunks + this.chunk[row] + nth;
        this.held[cell] = this.carried[row] + (this.copies[row] ? 0 : this.held[cell]);
        this.last[cell] = row;
      }
    }
  }

  /** Return the transfers that are on their way at a time: begun, and not yet with the receiver. */
  moving(time) {
    const found = [];
    for (let row = 0; row < this.length; row++) {
      if (this.started[row] <= time && time < this.arrived[row]) found.push(row);
    }
    return found;
  }

  linksOf(row) {
    const pair = `${this.src[row]} ${this.dst[row]}`;
    return this.routes.get(pair) ?? [`${this.src[row]}->${this.dst[row]}`];
  }

  /** Mark the transfers that a filter keeps. */
  filter({ worker, phase, link }) {
    const pairs = new Map();
    const takes = (row) => {
      const pair = this.src[row] * 1e6 + this.dst[row];
      if (!pairs.has(pair)) pairs.set(pair, this.linksOf(row).includes(link));
      return pairs.get(pair);
    };
    for (let row = 0; row < this.length; row++) {
      const ofWorker = worker === null || this.src[row] === worker || this.dst[row] === worker;
      const ofPhase = phase === null || this.phases[this.phase[row]] === phase;
      this.kept[row] = ofWorker && ofPhase && (link === null || takes(row)) ? 1 : 0;
    }
  }

  /** Return the next moment at which anything begins or ends, at least so far from a time, in either direction. */
  moment(time, least, forward) {
    const { moments } = this;
    if (forward) return moments[lowest(moments, Math.max(time + least, nextAfter(time)))] ?? this.end;
    const at = lowest(moments, time - least);
    return moments[moments[at] <= time - least && moments[at] < time ? at : at - 1] ?? 0;
  }

  /** Say all about one transfer, in lines. */
  told(row) {
    const many = this.count && this.count[row] > 1 ? ` to ${this.chunk[row] + this.count[row] - 1}` : "";
    return [
      `chunk ${this.chunk[row]}${many}, ${bytes(this.bytes[row])}: ${this.name(this.src[row])} to ${this.name(this.dst[row])}`,
      `${this.phases[this.phase[row]]}, step ${this.step[row]}, channel ${this.channel[row]}`,
      `posted ${seconds(this.posted[row])}, started ${seconds(this.started[row])}`,
      `sent ${seconds(this.sent[row])}, arrived ${seconds(this.arrived[row])}, applied ${seconds(this.applied[row])}`,
      `over ${this.linksOf(row).join(" ")}`,
    ];
  }

  name(node) {
    return node < this.workers ? `worker ${node}` : `switch ${node - this.workers}`;
  }
}

/** Return the links of each pair of workers, as far as they are known. */
function routesOf(tables) {
  const table = tables.get("routes");
  const found = new Map();
  for (let row = 0; table && row < table.length; row++) {
    const pair = `${table.cell("src", row)} ${table.cell("dst", row)}`;
    if (!found.has(pair)) found.set(pair, (table.cell("links", row) ?? "").split(" "));
  }
  return found;
}

/** Return the first place in ascending numbers whose number is at least so large. */
function lowest(numbers, least) {
  let low = 0;
  for (let high = numbers.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

function nextAfter(time) {
  return time + Math.max(Number.MIN_VALUE, Math.abs(time) * Number.EPSILON);
}

/** Return the path as points: time, row, and whether the line goes on to it. */
function pathPoints(table, schedule) {
  if (!table) return [];
  const points = [];
  let row = null;
  let before = "";
  for (let at = 0; at < table.length; at++) {
    const piece = Object.fromEntries(table.columns.map((one) => [one.name, table.cell(one.name, at)]));
    const moves = ["latency", "bandwidth", "queueing"].includes(piece.part);
    const key = moves ? `${piece.phase} ${piece.step} ${piece.chunk} ${piece.src} ${piece.dst}` : "";
    const target = schedule.again ? piece.src + 1 : piece.dst;
    if (moves && key === before) {
      points[points.length - 1] = [piece.to_s, piece.queue ? piece.src : target, true];
    } else {
      const stays = schedule.again && row !== null && row % schedule.workers === piece.worker;
      const [begin, end] = moves ? [piece.src, piece.queue ? piece.src : target] : stays ? [row, row] : [piece.worker, piece.worker];
      // The first worker's second row is the first one: nothing moves from there to here.
      const turned = schedule.again && row !== null && row !== begin && row % schedule.workers === begin;
      points.push([piece.from_s, begin, row !== null && !turned], [piece.to_s, end, true]);
    }
    before = key;
    row = points.at(-1)[1];
  }
  return points;
}
