// Workers down, time across: a band for each transfer, or, of too many to be told apart, shares of time as shades.

const GUTTER = 78;
const AXIS = 24;
/** Bands that are drawn one by one; beyond, each worker's row is a lane, the stronger the more it sends. */
const MOST_BANDS = 2500;
/** Bands up to which a later phase is hatched, and pixels of a row from which on; else it is paler. */
const MOST_HATCHED = 700;
const LEAST_HATCHED = 8;
/** Pixels of a lane's columns of time. */
const LANE = 2;
/** Half of the height of a worker's own room in its row. */
const HALF = 0.12;

class SpaceTime {
  constructor(place, schedule, look, path) {
    Object.assign(this, { schedule, look, path, withPath: path.length > 0 });
    this.rows = schedule.again ? schedule.workers + 1 : schedule.nodes;
    this.places = new Uint32Array(schedule.length);
    this.cells = new Cells();
    this.shares = new Shares(this.rows, schedule.phases.length);
    this.base = element("canvas");
    const roomy = Math.round(AXIS + 8 + this.rows * clamp(44 - this.rows / 2, 18, 44));
    this.picture = new Picture(
      place,
      { tabindex: 0, role: "application", "aria-label": SpaceTime.help, class: "spacetime" },
      () => clamp(roomy, 180, 620),
      (context, width, height) => this.draw(context, width, height),
    );
    this.whole();
    this.listen(this.picture.canvas);
    look.addEventListener("cursor", () => this.picture.ask());
    look.addEventListener("filter", () => {
      schedule.filter(look.filter);
      this.changed();
    });
  }

  static help =
    "Space-time diagram. A click moves the cursor; on a worker's name, it leaves this one's transfers. Drag: pan. " +
    "Wheel, after a click: zoom, with shift over workers. Keys: left and right, to the moment before or after, with shift " +
    "pan; + and - zoom; up and down, other workers; 0 all; space plays; escape, no filter.";

  /** Show all workers and all of the time. */
  whole() {
    this.from = 0;
    this.to = this.schedule.end * 1.01;
    this.top = -0.5;
    this.bottom = this.rows - 0.5;
    this.changed();
  }

  /** Draw all anew with the next frame; where only the cursor moves, what lies below it is kept. */
  changed() {
    this.drawnFor = null;
    this.picture.ask();
  }

  // Places.

  get span() {
    return this.to - this.from;
  }

  x(time) {
    return GUTTER + ((time - this.from) / this.span) * (this.picture.width - GUTTER - 6);
  }

  time(x) {
    return this.from + ((x - GUTTER) / (this.picture.width - GUTTER - 6)) * this.span;
  }

  y(row) {
    return ((row - this.top) / (this.bottom - this.top)) * (this.picture.height - AXIS);
  }

  row(y) {
    return this.top + (y / (this.picture.height - AXIS)) * (this.bottom - this.top);
  }

  /** Where a transfer ends: a ring's last worker sends to the row below it, which is the first worker once more. */
  target(row) {
    return this.schedule.again ? this.schedule.src[row] + 1 : this.schedule.dst[row];
  }

  nameOf(row) {
    const { workers, again } = this.schedule;
    if (row < workers) return `worker ${row}`;
    return again ? "(worker 0)" : `switch ${row - workers}`;
  }

  // Moves.

  zoom(times, at = (this.from + this.to) / 2) {
    const span = clamp(this.span * times, this.schedule.end * 1e-9, this.schedule.end * 1.01);
    this.pan(at - ((at - this.from) / this.span) * span, span);
  }

  pan(from, span = this.span) {
    this.from = clamp(from, 0, Math.max(0, this.schedule.end * 1.01 - span));
    this.to = this.from + span;
    this.changed();
  }

  zoomRows(times, at = (this.top + this.bottom) / 2) {
    const span = clamp((this.bottom - this.top) * times, Math.min(3, this.rows), this.rows);
    this.panRows(at - ((at - this.top) / (this.bottom - this.top)) * span, span);
  }

  panRows(top, span = this.bottom - this.top) {
    this.top = clamp(top, -0.5, this.rows - 0.5 - span);
    this.bottom = this.top + span;
    this.changed();
  }

  /** Make room around the cursor if it is not shown. */
  follow() {
    const { cursor } = this.look;
    if (cursor < this.from || cursor > this.to) this.pan(cursor - this.span / 2);
  }

  step(forward) {
    const pixel = this.span / (this.picture.width - GUTTER);
    this.look.moveTo(this.schedule.moment(this.look.cursor, pixel, forward));
    this.follow();
  }

  listen(canvas) {
    const on = (name, act, options) => canvas.addEventListener(name, act, options);
    on("keydown", (event) => this.key(event));
    on("wheel", (event) => this.wheel(event), { passive: false });
    on("pointerdown", (event) => {
      const { x, y } = this.picture.place(event);
      this.drag = { x, y, from: this.from, top: this.top, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    on("pointermove", (event) => this.point(event));
    on("pointerup", (event) => {
      if (this.drag && !this.drag.moved) this.click(this.picture.place(event));
      this.drag = null;
    });
    on("pointerleave", () => tip.hide());
    on("dblclick", (event) => this.zoom(0.4, this.time(this.picture.place(event).x)));
  }

  key(event) {
    const keys = {
      ArrowRight: () => (event.shiftKey ? this.pan(this.from + this.span / 8) : this.step(true)),
      ArrowLeft: () => (event.shiftKey ? this.pan(this.from - this.span / 8) : this.step(false)),
      ArrowDown: () => this.panRows(this.top + 1),
      ArrowUp: () => this.panRows(this.top - 1),
      Home: () => this.look.moveTo(0),
      End: () => this.look.moveTo(this.schedule.end),
      "+": () => this.zoom(0.6, this.middle()),
      "=": () => this.zoom(0.6, this.middle()),
      "-": () => this.zoom(1 / 0.6, this.middle()),
      0: () => this.whole(),
      " ": () => this.onPlay?.(),
      Escape: () => this.look.choose({ worker: null, phase: null, link: null }),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
    if (event.key === "Home" || event.key === "End") this.follow();
  }

  /** What a zoom by keys keeps in place: the cursor, if it is shown. */
  middle() {
    const { cursor } = this.look;
    return cursor >= this.from && cursor <= this.to ? cursor : (this.from + this.to) / 2;
  }

  /** Zoom; a wheel belongs to the page until somebody has turned to the picture, or holds control. */
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== this.picture.canvas) return;
    event.preventDefault();
    const { x, y } = this.picture.place(event);
    const times = Math.exp(clamp(event.deltaY, -200, 200) / 400);
    if (event.shiftKey) this.zoomRows(times, this.row(y));
    else this.zoom(times, this.time(Math.max(x, GUTTER)));
  }

  point(event) {
    const { x, y } = this.picture.place(event);
    const { drag } = this;
    if (drag) {
      drag.moved ||= Math.abs(x - drag.x) + Math.abs(y - drag.y) > 4;
      if (drag.moved) {
        tip.hide();
        this.pan(drag.from - ((x - drag.x) / (this.picture.width - GUTTER)) * this.span);
        this.panRows(drag.top - ((y - drag.y) / (this.picture.height - AXIS)) * (this.bottom - this.top));
      }
      return;
    }
    const found = x > GUTTER && this.found(this.time(x), this.row(y));
    if (found) tip.show(event, found);
    else tip.hide();
  }

  click({ x, y }) {
    const row = Math.round(this.row(y));
    if (x > GUTTER) this.look.moveTo(this.time(x));
    else if (row >= 0 && row < this.rows && y < this.picture.height - AXIS) {
      this.look.toggle("worker", this.schedule.again ? row % this.schedule.workers : row);
    }
  }

  /** Say what is at a place: a transfer, or how busy a lane is. */
  found(time, row) {
    const near = (3 * this.span) / this.picture.width;
    if (this.inLanes) {
      const lane = Math.round(row);
      const column = Math.floor(((time - this.from) / this.span) * this.shares.columns);
      const share = lane >= 0 && lane < this.rows && this.shares.at(lane, column);
      return share && [this.nameOf(lane), `${seconds(time)}: sends ${percent(share)} of the time`, "zoom in for transfers"];
    }
    let best = -1;
    for (const one of this.shown) {
      const off = this.distance(one, time, row);
      if (off <= near && (best < 0 || this.schedule.started[one] > this.schedule.started[best])) best = one;
    }
    return best >= 0 && this.schedule.told(best);
  }

  /** Return how far in time a place is from a transfer's band; 0 inside. */
  distance(one, time, row) {
    const { started, sent, arrived, src } = this.schedule;
    const target = this.target(one);
    if (Math.abs(row - src[one]) <= 2 * HALF) return Math.max(0, started[one] - time, time - sent[one]);
    const part = (row - src[one]) / (target - src[one]);
    if (!(part >= 0 && part <= 1)) return Infinity;
    const width = this.schedule.again ? sent[one] - started[one] : 0;
    const head = Math.max(started[one], arrived[one] - width);
    const begin = started[one] + part * (head - started[one]);
    const end = begin + width;
    return Math.max(0, begin - time, time - end);
  }

  // Drawing.

  draw(context, width, height) {
    const { dense } = this.picture;
    // Whatever the picture depends on beside what `changed` tells of.
    const key = [width, height, dense, ...Object.values(inks)].join();
    if (this.drawnFor !== key) {
      Object.assign(this.base, { width: width * dense, height: height * dense });
      const below = this.base.getContext("2d");
      below.scale(dense, dense);
      this.picture.prepare(below);
      this.drawBase(below, width, height);
      this.drawnFor = key;
    }
    context.drawImage(this.base, 0, 0, width, height);
    if (!this.inLanes) this.drawMoving(context, width, height);
    this.drawCursor(context, height);
  }

  drawBase(context, width, height) {
    this.shown = this.visible();
    this.inLanes = this.shown.length > MOST_BANDS;
    this.onMode?.(this.inLanes);
    context.save();
    this.clip(context, width, height);
    this.drawRows(context, width);
    if (this.inLanes) this.drawLanes(context, width);
    else this.drawBands(context);
    if (this.withPath) this.drawPath(context);
    context.restore();
    this.drawAxis(context, width, height);
    this.drawLabels(context, height);
  }

  clip(context, width, height) {
    context.beginPath();
    context.rect(GUTTER, 0, width - GUTTER, height - AXIS);
    context.clip();
  }

  /** Return the transfers that are kept and in sight. */
  visible() {
    const { schedule, from, to, top, bottom, places } = this;
    let number = 0;
    for (let row = 0; row < schedule.length; row++) {
      if (!schedule.kept[row] || schedule.started[row] > to || schedule.applied[row] < from) continue;
      const source = schedule.src[row];
      const target = this.target(row);
      if (Math.max(source, target) >= top && Math.min(source, target) <= bottom) places[number++] = row;
    }
    return places.subarray(0, number);
  }

  drawRows(context, width) {
    context.strokeStyle = inks.pale;
    context.lineWidth = 1;
    if (this.y(1) - this.y(0) < 4) return;
    for (let row = Math.max(0, Math.floor(this.top)); row < Math.min(this.rows, this.bottom + 1); row++) {
      line(context, [[GUTTER, this.y(row)], [width, this.y(row)]]);
    }
  }

  drawBands(context) {
    const { schedule } = this;
    const groups = new Map();
    for (const row of this.shown) {
      const key = schedule.phase[row] * MANY.chunk + (schedule.chunk[row] % MANY.chunk);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(row);
    }
    const hatched = this.shown.length <= MOST_HATCHED && this.y(1) - this.y(0) >= LEAST_HATCHED;
    for (const [key, rows] of groups) {
      const later = key >= MANY.chunk;
      const outline = new Path2D();
      for (const row of rows) this.band(outline, row);
      context.fillStyle = context.strokeStyle = inks.chunk[key % MANY.chunk];
      context.globalAlpha = later && !hatched ? 0.55 : 1;
      context.lineWidth = hatched ? 1.5 : 1;
      context.setLineDash(later && hatched ? [5, 3] : []);
      context.fill(outline);
      if (hatched || !this.schedule.again) context.stroke(outline);
      context.setLineDash([]);
      context.globalAlpha = 1;
      if (later && hatched) {
        context.fillStyle = hatching(context);
        context.fill(outline);
      }
    }
    this.drawApplying(context);
    if (hatched) this.drawNumbers(context);
  }

  /** Add a transfer's outline: at its sender as long as it takes to leave, at its receiver to arrive. */
  band(path, row) {
    const { started, sent, arrived, src, again } = this.schedule;
    const source = src[row];
    const target = this.target(row);
    const down = Math.sign(target - source) * HALF;
    const begin = this.x(started[row]);
    const end = Math.max(begin + 1, this.x(sent[row])); // whatever is sent is seen
    const last = Math.max(end, this.x(arrived[row]));
    if (again) {
      const head = Math.max(begin, last - (end - begin));
      path.moveTo(begin, this.y(source + down));
      path.lineTo(end, this.y(source + down));
      path.lineTo(last, this.y(target - down));
      path.lineTo(head, this.y(target - down));
      path.closePath();
    } else {
      // Areas between distant workers would hide each other: a bar while it leaves, and a line to where it arrives.
      path.rect(begin, this.y(source - HALF), end - begin, this.y(source + HALF) - this.y(source - HALF));
      path.moveTo(begin, this.y(source + down));
      path.lineTo(last, this.y(target - down));
    }
  }

  /** Draw on the receiver's line how long each transfer waits for its processor and is reduced. */
  drawApplying(context) {
    const { arrived, applied } = this.schedule;
    const high = Math.max(2, (this.y(1) - this.y(0)) * HALF);
    context.fillStyle = inks.ink;
    for (const row of this.shown) {
      if (applied[row] === arrived[row]) continue;
      context.fillRect(this.x(arrived[row]), this.y(this.target(row)) - high / 2, this.x(applied[row]) - this.x(arrived[row]), high);
    }
  }

  /** Write the numbers of chunks where there is room. */
  drawNumbers(context) {
    const { schedule } = this;
    if (this.y(1) - this.y(0) <= 14) return;
    context.textAlign = "center";
    context.lineWidth = 3;
    context.strokeStyle = inks.back;
    context.fillStyle = inks.ink;
    for (const row of this.shown) {
      const [begin, end] = [this.x(schedule.started[row]), this.x(schedule.sent[row])];
      if (end - begin <= 16) continue;
      const source = schedule.src[row];
      const middle = schedule.again ? (begin + this.x(schedule.arrived[row])) / 2 : (begin + end) / 2;
      const at = this.y(schedule.again ? (source + this.target(row)) / 2 : source);
      context.strokeText(schedule.chunk[row], middle, at);
      context.fillText(schedule.chunk[row], middle, at);
    }
  }

  /** Draw the edges of what moves at the cursor. */
  drawMoving(context, width, height) {
    const { schedule, look } = this;
    const moving = new Path2D();
    for (const row of this.shown) {
      if (schedule.started[row] <= look.cursor && look.cursor < schedule.arrived[row]) this.band(moving, row);
    }
    context.save();
    this.clip(context, width, height);
    context.strokeStyle = inks.cursor;
    context.lineWidth = clamp((this.y(1) - this.y(0)) / 8, 0.4, 2);
    context.stroke(moving);
    context.restore();
  }

  drawLanes(context, width) {
    const across = width - GUTTER - 6;
    const [top, bottom] = [this.y(-0.5), this.y(this.rows - 0.5)];
    this.shares.count(this.schedule, this.shown, this.from, this.span, Math.ceil(across / LANE));
    shadeLanes(this.cells, this.shares);
    this.cells.paint(context, GUTTER, top, across, bottom - top);
  }

  /** Draw the path that ended last: along workers, and across with transfers. */
  drawPath(context) {
    const points = this.path.map(([time, node, goes]) => [this.x(time), this.y(node), goes]);
    for (const [color, wide] of [[inks.back, 5], [inks.alert, 2.5]]) {
      context.strokeStyle = color;
      context.lineWidth = wide;
      context.lineJoin = "round";
      line(context, points);
    }
  }

  drawAxis(context, width, height) {
    context.fillStyle = inks.ink;
    context.strokeStyle = inks.grey;
    context.textAlign = "center";
    const marks = ticks(this.from, this.to, (width - GUTTER) / 110);
    const labels = timeLabels(marks, this.to);
    const y = height - AXIS;
    context.lineWidth = 1;
    line(context, [[GUTTER, y], [width, y]]);
    marks.values.forEach((value, at) => {
      const x = this.x(value);
      if (x < GUTTER - 1 || x > width) return;
      line(context, [[x, y], [x, y + 4]]);
      context.fillText(labels[at], clamp(x, GUTTER, width - 24), y + 14);
    });
  }

  drawLabels(context, height) {
    context.textAlign = "right";
    const each = Math.max(1, Math.ceil(17 / Math.max(0.01, this.y(1) - this.y(0))));
    for (let row = Math.ceil(this.top); row <= Math.min(this.rows - 1, this.bottom); row++) {
      if (row % each) continue;
      const chosen = this.look.filter.worker === (this.schedule.again ? row % this.schedule.workers : row);
      context.font = `${chosen ? "bold " : ""}12px system-ui, sans-serif`;
      context.fillStyle = inks.ink;
      context.fillText(this.nameOf(row), GUTTER - 8, clamp(this.y(row), 7, height - AXIS - 6));
    }
  }

  drawCursor(context, height) {
    const x = this.x(this.look.cursor);
    if (x < GUTTER || x > this.picture.width) return;
    context.strokeStyle = context.fillStyle = inks.cursor;
    context.lineWidth = 1.5;
    line(context, [[x, 0], [x, height - AXIS]]);
    context.beginPath();
    context.moveTo(x - 5, 0);
    context.lineTo(x + 5, 0);
    context.lineTo(x, 8);
    context.fill();
  }
}
