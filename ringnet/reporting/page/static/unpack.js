// Data as it travels: text in base64, compressed; in it a header in JSON, then the columns of all tables, one by one.

const ARRAYS = { Uint8: Uint8Array, Uint16: Uint16Array, Int32: Int32Array, Float64: Float64Array };
/** What stands in a cell of text where a table has none. */
const NOTHING = "";

/** Return the header and a function that gives the array which a part of the header tells of. */
async function unpack(text) {
  const binary = atob(text);
  const packed = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) packed[at] = binary.charCodeAt(at);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const array = (told) => new ARRAYS[told.type](buffer, 4 + length + told.at, told.length);
  return { header, array };
}

/** A table by its columns; the numbers of one are an array, text is a number of a value. */
class Table {
  constructor(name, told, array) {
    this.name = name;
    this.length = told.rows;
    this.of = told.of;
    this.columns = told.columns.map((one) => ({ ...one, array: array(one.array) }));
    this.byName = new Map(this.columns.map((one) => [one.name, one]));
  }

  has(name) {
    return this.byName.has(name);
  }

  /** Return the numbers of a column, or the numbers of its values where it is text. */
  array(name) {
    return this.byName.get(name).array;
  }

  values(name) {
    return this.byName.get(name).values;
  }

  /** Return a cell: a number, a text, or null where there is none. */
  cell(name, row) {
    return cellOf(this.byName.get(name), row);
  }
}

function cellOf(column, row) {
  const found = column.array[row];
  if (column.values) return column.values[found] === NOTHING ? null : column.values[found];
  return Number.isNaN(found) ? null : found;
}
