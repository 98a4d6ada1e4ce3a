// Pictures on canvas: as sharp as the screen, in the colours of the page's style, drawn at most once a frame.

/** Colours of chunks, of phases, and of all else, as the style has them for light, dark and paper. */
let inks = {};
const NAMES = ["ink", "grey", "pale", "back", "alert", "partial", "complete", "cursor"];
const MANY = { chunk: 8, phase: 4, load: 6 };

function readInks() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  inks = Object.fromEntries(NAMES.map((name) => [name, read(name)]));
  for (const [name, number] of Object.entries(MANY)) {
    inks[name] = Array.from({ length: number }, (_, at) => read(`${name}-${at}`));
  }
}

/** All pictures of the page, which are drawn again when the colours change. */
const pictures = [];

/** A canvas that follows the width of its place; `draw` is given a context in pixels of the page. */
class Picture {
  constructor(place, attributes, height, draw) {
    this.canvas = element("canvas", attributes);
    this.heightOf = height;
    this.draw = draw;
    this.width = this.height = 0;
    this.waiting = false;
    place.append(this.canvas);
    pictures.push(this);
    this.fit();
    this.ask();
    new ResizeObserver(() => this.fit() && this.paint()).observe(place);
  }

  /** Take the width of the place; return whether that is another than before. */
  fit() {
    const width = Math.max(200, Math.floor(this.canvas.parentElement.clientWidth));
    const height = Math.round(this.heightOf(width));
    const dense = window.devicePixelRatio || 1;
    if (width === this.width && height === this.height && dense === this.dense) return false;
    Object.assign(this, { width, height, dense });
    this.canvas.width = Math.round(width * dense);
    this.canvas.height = Math.round(height * dense);
    this.canvas.style.height = `${height}px`;
    return true;
  }

  /** Ask to be drawn, with the next frame. */
  ask() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint();
    });
  }

  paint() {
    const context = this.canvas.getContext("2d");
    context.setTransform(this.dense, 0, 0, this.dense, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.prepare(context);
    this.draw(context, this.width, this.height);
  }

  prepare(context) {
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
  }

  /** Return where an event is, in pixels of the picture. */
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }
}

function repaint() {
  readInks();
  for (const picture of pictures) picture.paint();
}

/** Return round numbers from low to high, about as many as there is room for. */
function ticks(low, high, room) {
  const rough = (high - low) / Math.max(1, room);
  if (!(rough > 0)) return { values: [low], step: 1 };
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= rough * (1 - 1e-9));
  const first = Math.ceil(low / step - 1e-9);
  const number = Math.max(0, Math.floor(high / step + 1e-9) - first + 1);
  return { values: Array.from({ length: number }, (_, at) => (first + at) * step), step };
}

/** Return times as labels of one axis: in one unit, with as many digits as tell them apart. */
function timeLabels({ values, step }, most) {
  const unit = unitOf(most, SECONDS);
  const places = Math.min(12, Math.max(0, -Math.floor(Math.log10(step / SECONDS[unit]) + 1e-9)));
  return values.map((value) => `${(value / SECONDS[unit]).toFixed(places)} ${unit}`);
}

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

/** Stroke a line through points; one whose third part is false is begun anew. */
function line(context, points) {
  context.beginPath();
  points.forEach(([x, y, goes = true], at) => (at && goes ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
}

/** Return what lies over a later phase: thin lines of the background's colour, aslant. */
function hatching(context) {
  const size = 7;
  const tile = element("canvas", { width: size, height: size });
  const own = tile.getContext("2d");
  own.strokeStyle = inks.back;
  own.lineWidth = 1.4;
  line(own, [[-1, size + 1], [size + 1, -1]]);
  line(own, [[-1, 1], [1, -1]]);
  line(own, [[size - 1, size + 1], [size + 1, size - 1]]);
  return context.createPattern(tile, "repeat");
}
