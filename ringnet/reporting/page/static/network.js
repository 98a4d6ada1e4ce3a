// The network at the cursor: every link as loaded as it is then, both directions side by side.

/** Pixels that the two directions of a cable are apart from its middle. */
const APART = 2.6;
const NEAR = 7;

class Network {
  constructor(place, told, tables, look, schedule, array) {
    Object.assign(this, { size: told.size, radius: told.radius, look, schedule, links: tables.get("links") });
    for (const name of ["x", "y", "row", "worker", "place", "from", "to"]) this[name] = array(told[name]);
    this.names = new Table("nodes", told.nodes, array);
    this.load = loadsOf(tables, schedule, look);
    const label = `Drawing of the network, ${count(this.links.length)} links, coloured by their load at the cursor`;
    this.picture = new Picture(
      place,
      { role: "img", "aria-label": label, class: "network" },
      (width) => Math.min(width * (told.size[1] / told.size[0]), 520),
      (context, width, height) => this.draw(context, width, height),
    );
    this.words(place, tables.has("utilisation"));
    look.addEventListener("cursor", () => this.picture.ask());
    look.addEventListener("filter", () => this.picture.ask());
    const { canvas } = this.picture;
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerleave", () => tip.hide());
    canvas.addEventListener("click", (event) => {
      const link = this.nearest(this.picture.place(event));
      if (link >= 0) look.toggle("link", this.links.cell("link", link));
    });
  }

  /** Add the scale of colours below the drawing. */
  words(place, isCounted) {
    const steps = inks.load.map((_, at) => element("i", { class: `load-${at}` }));
    const [none, , , , , all] = steps;
    const words = isCounted ? ["idle ", ...steps, " busy all the time"] : [none, " idle ", all, " something on its way"];
    place.append(element("p", { class: "scale" }, ...words, this.schedule ? ". A click on a link leaves what crosses it." : ""));
  }

  fit(width, height) {
    const [wide, high] = this.size;
    const scale = Math.min(width / wide, height / high);
    const left = (width - wide * scale) / 2;
    return { scale, at: (node) => [left + this.x[node] * scale, this.y[node] * scale] };
  }

  /** Return the points of a link's line: straight, or an arc between nodes of one layer. */
  way(link, { scale, at }) {
    const [start, end] = [at(this.from[link]), at(this.to[link])];
    const length = Math.hypot(end[0] - start[0], end[1] - start[1]) || 1;
    const aside = this.links.cell("link", link)?.includes("<->") ? 0 : APART;
    const right = [(-(end[1] - start[1]) / length) * aside, ((end[0] - start[0]) / length) * aside];
    const moved = [start, end].map(([x, y]) => [x + right[0], y + right[1]]);
    const row = this.row[this.from[link]];
    if (row < 0 || row !== this.row[this.to[link]]) return moved;
    const lift = 0.1 * scale + 0.09 * length + (start[0] < end[0] ? 2 * APART : 0);
    return [moved[0], [(start[0] + end[0]) / 2, start[1] - 2 * lift], moved[1]];
  }

  draw(context, width, height) {
    const fit = this.fit(width, height);
    this.lines = Array.from({ length: this.links.length }, (_, link) =>
      this.from[link] < 0 || this.to[link] < 0 ? null : this.way(link, fit),
    );
    const loads = Array.from({ length: this.links.length }, (_, link) => this.load(link));
    const order = loads.map((_, link) => link).sort((one, other) => loads[one] - loads[other]);
    for (const link of order) {
      if (!this.lines[link]) continue;
      const chosen = this.look.filter.link !== null && this.links.cell("link", link) === this.look.filter.link;
      if (chosen) this.stroke(context, link, inks.cursor, 8);
      this.stroke(context, link, inks.load[shade(loads[link])], 1 + 3 * Math.min(1, loads[link] || 0));
    }
    this.drawNodes(context, fit);
  }

  stroke(context, link, color, wide) {
    const [start, middle, end] = this.lines[link];
    context.strokeStyle = color;
    context.lineWidth = wide;
    context.beginPath();
    context.moveTo(...start);
    if (end) context.quadraticCurveTo(...middle, ...end);
    else context.lineTo(...middle);
    context.stroke();
  }

  drawNodes(context, { scale, at }) {
    const radius = clamp(this.radius * scale, 1.5, 16);
    context.textAlign = "center";
    for (let node = 0; node < this.names.length; node++) {
      const [x, y] = at(node);
      const worker = this.worker[node];
      context.fillStyle = worker >= 0 ? inks.ink : this.place[node] ? inks.pale : inks.grey;
      context.beginPath();
      if (worker >= 0 || this.place[node]) context.arc(x, y, radius, 0, 2 * Math.PI);
      else context.rect(x - radius * 0.7, y - radius * 0.7, 1.4 * radius, 1.4 * radius);
      context.fill();
      if (worker >= 0 && radius >= 7) {
        context.fillStyle = inks.back;
        context.fillText(String(worker), x, y + 0.5);
      }
    }
  }

  point(event) {
    const place = this.picture.place(event);
    const node = this.nodeAt(place);
    const link = node < 0 ? this.nearest(place) : -1;
    if (node >= 0) tip.show(event, [this.nodeName(node)]);
    else if (link >= 0) tip.show(event, this.told(link));
    else tip.hide();
  }

  nodeName(node) {
    const name = this.names.cell("name", node) ?? "";
    return this.worker[node] < 0 ? name : name === String(this.worker[node]) ? `worker ${name}` : `worker ${this.worker[node]} at ${name}`;
  }

  nodeAt({ x, y }) {
    const { scale, at } = this.fit(this.picture.width, this.picture.height);
    const radius = clamp(this.radius * scale, 4, 16);
    for (let node = 0; node < this.names.length; node++) {
      const [left, top] = at(node);
      if (Math.hypot(left - x, top - y) <= radius) return node;
    }
    return -1;
  }

  told(link) {
    const cell = (name) => written(name, this.links.cell(name, link));
    const load = this.load(link);
    return [
      `${cell("link")}: ${Number.isNaN(load) ? "load at the cursor not kept" : `${percent(Math.min(1, load))} busy at the cursor`}`,
      `${cell("utilisation") || "0 %"} of the whole time; ${cell("bytes")} in ${cell("transfers")} transfers`,
      `${cell("bandwidth_Bps")}, ${cell("latency_s")}; longest queue ${cell("longest_queue")}`,
    ];
  }

  nearest({ x, y }) {
    let best = -1;
    let least = NEAR;
    this.lines?.forEach((points, link) => {
      const off = points ? distanceTo(x, y, flat(points)) : Infinity;
      if (off < least) [best, least] = [link, off];
    });
    return best;
  }
}

/** Return the number of the shade of a load; that of an unknown one is that of none. */
function shade(load) {
  const last = MANY.load - 1;
  return load > 0 ? clamp(Math.ceil(load * last), 1, last) : 0;
}

/** Return an arc as short straight lines. */
function flat([start, middle, end]) {
  if (!end) return [start, middle];
  return Array.from({ length: 9 }, (_, at) => {
    const t = at / 8;
    return [0, 1].map((axis) => (1 - t) ** 2 * start[axis] + 2 * t * (1 - t) * middle[axis] + t ** 2 * end[axis]);
  });
}

function distanceTo(x, y, points) {
  let least = Infinity;
  for (let at = 1; at < points.length; at++) {
    const [[left, top], [right, bottom]] = [points[at - 1], points[at]];
    const [across, down] = [right - left, bottom - top];
    const part = clamp(((x - left) * across + (y - top) * down) / (across ** 2 + down ** 2 || 1), 0, 1);
    least = Math.min(least, Math.hypot(left + part * across - x, top + part * down - y));
  }
  return least;
}

/** Return what says how busy a link is at the cursor: as it was counted over time, else by what is on its way. */
function loadsOf(tables, schedule, look) {
  const [links, table] = [tables.get("links"), tables.get("utilisation")];
  const bins = binsOf(table);
  const width = table ? table.array("to_s")[0] - table.array("from_s")[0] : 0;
  let used = { at: NaN, links: new Set() };
  return (link) => {
    const name = links.cell("link", link);
    const own = bins.get(name);
    if (own) return own[Math.min(own.length - 1, Math.floor(look.cursor / width))] ?? 0;
    if (!links.cell("bytes", link)) return 0;
    if (!schedule) return NaN;
    if (used.at !== look.cursor) {
      const rows = schedule.moving(look.cursor);
      used = { at: look.cursor, links: new Set(rows.flatMap((row) => schedule.linksOf(row))) };
    }
    return used.links.has(name) ? 1 : 0;
  };
}

/** Return the shares of each link's spans of time, in order, by its name. */
function binsOf(table) {
  const found = new Map();
  for (let row = 0; table && row < table.length; row++) {
    const name = table.cell("link", row);
    if (!found.has(name)) found.set(name, []);
    found.get(name).push(table.cell("utilisation", row) ?? 0);
  }
  return found;
}
