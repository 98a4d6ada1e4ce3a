// Lanes: how much is sent, row by row, as shades; for more transfers than can be told apart.

/** The least shade of a lane in which anything is sent. */
const FAINTEST = 40;

/** Shares of time in which rows send, in columns of time, a layer for each phase; room that is used again. */
class Shares {
  constructor(rows, phases) {
    this.rows = rows;
    this.layers = Math.min(MANY.phase, phases);
    this.sums = [];
  }

  /** Count transfers in so many columns from a time on. */
  count(schedule, shown, from, span, columns) {
    this.columns = columns;
    this.width = columns + 2; // what lies behind the last edge is cut off
    const size = this.rows * this.width;
    for (let layer = 0; layer < this.layers; layer++) {
      if (this.sums[layer]?.length === size) this.sums[layer].fill(0);
      else this.sums[layer] = new Float32Array(size);
    }
    const { phase, src, started, sent } = schedule;
    const scale = columns / span;
    for (let at = 0; at < shown.length; at++) {
      const row = shown[at];
      const sum = this.sums[Math.min(phase[row], this.layers - 1)];
      const base = src[row] * this.width;
      this.edge(sum, base, (started[row] - from) * scale, 1);
      this.edge(sum, base, (sent[row] - from) * scale, -1);
    }
    for (const sum of this.sums) {
      for (let at = 1; at < size; at++) if (at % this.width) sum[at] += sum[at - 1];
    }
  }

  /** Count that something begins (or, with -1, ends) at a place: what lies behind it in its column, and all after it. */
  edge(sum, base, place, sign) {
    const at = place < 0 ? 0 : place > this.columns ? this.columns : place;
    const cell = at | 0;
    sum[base + cell] += sign * (cell + 1 - at);
    sum[base + cell + 1] += sign * (at - cell);
  }

  /** Return the share of a row's column in which it sends, whatever the phase. */
  at(row, column) {
    return Math.min(1, this.sums.reduce((sum, layer) => sum + layer[row * this.width + column], 0));
  }
}

/** A small picture of one pixel a cell, painted as large as is wanted. */
class Cells {
  constructor() {
    this.tile = element("canvas", { width: 1, height: 1 });
  }

  /** Return the pixels of so many cells, all clear: red is the lowest byte of each, opacity the highest. */
  clear(columns, rows) {
    const { tile } = this;
    if (!this.image || tile.width !== columns || tile.height !== rows) {
      Object.assign(tile, { width: columns, height: rows });
      this.image = new ImageData(columns, rows);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    return this.pixels.fill(0);
  }

  paint(context, x, y, width, height) {
    this.tile.getContext("2d").putImageData(this.image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.tile, x, y, width, height);
  }
}

/** Return a colour, written as #rrggbb, as the lower bytes of a pixel. */
function pixelOf(color) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return red | (green << 8) | (blue << 16);
}

/** Shade cells by shares: the colour of the phase that has most, the stronger the more all have. */
function shadeLanes(cells, { sums, width, columns, rows }) {
  const pixels = cells.clear(columns, rows);
  const colors = inks.phase.map(pixelOf);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      let all = 0;
      let most = 0;
      for (let phase = 0; phase < sums.length; phase++) {
        const share = sums[phase][row * width + column];
        all += share;
        if (share > sums[most][row * width + column]) most = phase;
      }
      if (all < 1e-4) continue;
      const strength = Math.max(FAINTEST, 255 * Math.min(1, all));
      pixels[row * columns + column] = colors[most] | (strength << 24);
    }
  }
}
