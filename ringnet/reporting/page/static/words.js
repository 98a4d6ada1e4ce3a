// Quantities in words, as ringnet writes them everywhere else, and elements of the page.

const SECONDS = { s: 1, ms: 1e-3, us: 1e-6, ns: 1e-9, ps: 1e-12 };
const BINARY = { TiB: 2 ** 40, GiB: 2 ** 30, MiB: 2 ** 20, KiB: 2 ** 10, B: 1 };
const DECIMAL = { "TB/s": 1e12, "GB/s": 1e9, "MB/s": 1e6, "kB/s": 1e3, "B/s": 1 };

function digits(number) {
  return String(Number(number.toPrecision(4)));
}

/** Return the unit that suits a value: the first in which it is at least 1. */
function unitOf(value, units) {
  const found = Object.keys(units).find((unit) => Math.abs(Number(digits(value / units[unit]))) >= 1);
  return found ?? Object.keys(units).at(-1);
}

function scaled(value, units) {
  const unit = unitOf(value, units);
  return `${digits(value / units[unit])} ${unit}`;
}

const seconds = (value) => (value ? scaled(value, SECONDS) : "0 s");
const bytes = (value) => (value ? scaled(value, BINARY) : "0 B");
const rate = (value) => scaled(value, DECIMAL);
const percent = (value) => `${digits(100 * value)} %`;
const count = (value) => value.toLocaleString("en-US");

/** How a number is written, by the end of its column's name; the kinds of a swept key stand at the end. */
const FORMS = [
  [/_s(_max|_min)?$/, seconds],
  [/_Bps$/, rate],
  [/(^|_)bytes(_|$)|^bytes of /, bytes],
  [/(^|_)(share|utilisation|efficiency)$/, percent],
];

function written(name, value) {
  if (value === null) return "";
  if (typeof value === "string") return value;
  const form = FORMS.find(([pattern]) => pattern.test(name));
  if (form) return form[1](value);
  return Number.isInteger(value) ? count(value) : digits(value);
}

/** Return an element; texts among its children are words, whatever they hold. */
function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** What is told beside the pointer: lines of words. */
const tip = {
  box: element("div", { id: "tip", role: "tooltip", hidden: true }),

  show(event, lines) {
    if (!this.box.isConnected) document.body.append(this.box);
    this.box.replaceChildren(...lines.map((line) => element("div", {}, line)));
    this.box.hidden = false;
    const { width, height } = this.box.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - width - 4);
    const top = event.clientY + 16 + height > window.innerHeight ? event.clientY - height - 10 : event.clientY + 16;
    this.box.style.left = `${Math.max(4, left)}px`;
    this.box.style.top = `${Math.max(4, top)}px`;
  },

  hide() {
    this.box.hidden = true;
  },
};
