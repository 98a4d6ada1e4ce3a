// The page put together: data unpacked, each section filled, and keys, buttons and pictures tied to one look.

/** How long the whole schedule plays. */
const PLAY_S = 12;

const section = (name) => document.getElementById(name);

async function start() {
  if (!("DecompressionStream" in window)) throw new Error("this browser is too old: it unpacks no data");
  readInks();
  const { header, array } = await unpack(section("data").textContent);
  const tables = new Map(Object.entries(header.tables).map(([name, told]) => [name, new Table(name, told, array)]));
  if (header.kind === "run") showRun(header, tables, array);
  if (header.winners) addWinners(section("winners"), header.winners, tables.get("compare"));
  if (header.charts?.length) new Curves(section("curves"), header, tables, array);
  const sorted = addTables(section("tables"), tables);
  if (header.kind === "study") for (const fold of document.querySelectorAll("details")) fold.open = true;
  onPaper(sorted);
  document.documentElement.dataset.ready = "";
}

function showRun(header, tables, array) {
  const place = section("schedule");
  const schedule = header.schedule && new Schedule(header.schedule, tables, header.workers, array);
  const look = new Look(schedule?.end ?? header.lanes?.end_s ?? tables.get("summary")?.cell("makespan_s", 0) ?? 0);
  if (schedule) showSchedule(place, schedule, look, tables);
  else if (header.lanes) showLanes(place, header.lanes, array, look);
  if (header.network.size) new Network(section("network"), header.network, tables, look, schedule, array);
}

function showSchedule(place, schedule, look, tables) {
  const bar = element("div", { class: "tools" });
  place.append(bar);
  const diagram = new SpaceTime(place, schedule, look, pathPoints(tables.get("path"), schedule));
  const play = player(look, schedule.end, () => diagram.follow());
  diagram.onPlay = () => play.click();
  bar.append(...filters(schedule, look, tables), ...buttons(diagram), play);
  place.append(slider(look, () => diagram.follow()), legendOf(schedule, look, diagram), element("p", { class: "hint" }, SpaceTime.help));
  const now = element("p", { class: "now", role: "status" });
  place.append(now);
  const tell = () => (now.textContent = under(schedule, look.cursor));
  look.addEventListener("cursor", tell);
  tell();
  const holds = section("holds");
  if (schedule.why) holds.append(element("p", { class: "missing" }, schedule.why));
  else {
    holds.append(keyOfBuffers());
    new Buffers(holds, schedule, look, tables.get("states"));
  }
}

/** Say how much is under way at a time, and of few transfers what. */
function under(schedule, time) {
  const rows = schedule.moving(time);
  const few = rows.slice(0, 8).map((row) => `chunk ${schedule.chunk[row]}: ${schedule.src[row]} to ${schedule.dst[row]}`);
  const more = rows.length > few.length ? `, and ${count(rows.length - few.length)} more` : "";
  return rows.length ? `${count(rows.length)} under way: ${few.join(", ")}${more}` : "nothing under way";
}

/** Return what chooses a worker, a phase and a link; what is typed and is none of them is marked, and chooses nothing. */
function filters(schedule, look, tables) {
  const links = tables.get("links") ? tables.get("links").values("link") : [];
  const nodes = Array.from({ length: schedule.nodes }, (_, node) => String(node));
  const list = (id, names) => element("datalist", { id }, ...names.slice(0, 500).map((name) => element("option", { value: name })));
  const field = (key, names, read) => {
    const input = element("input", { list: `${key}s`, placeholder: "all", size: 9, "data-filter": key, autocomplete: "off" });
    input.addEventListener("input", () => {
      const known = input.value === "" || names.includes(input.value);
      input.setAttribute("aria-invalid", String(!known));
      if (known) look.choose({ [key]: input.value === "" ? null : read(input.value) });
    });
    look.addEventListener("filter", () => {
      if (document.activeElement !== input || look.filter[key] !== null) input.value = look.filter[key] ?? "";
      input.setAttribute("aria-invalid", "false");
    });
    return [element("label", {}, `${key} `, input), list(`${key}s`, names)];
  };
  const phase = element("select", { "data-filter": "phase" }, element("option", { value: -1 }, "all"), ...schedule.phases.map((name, at) => element("option", { value: at }, name)));
  phase.addEventListener("change", () => look.choose({ phase: schedule.phases[phase.value] ?? null }));
  look.addEventListener("filter", () => (phase.value = schedule.phases.indexOf(look.filter.phase)));
  return [...field("worker", nodes, Number), element("label", {}, "phase ", phase), ...field("link", links, String)];
}

function buttons(diagram) {
  const button = (words, name, click) => element("button", { type: "button", "aria-label": name, title: name, click }, words);
  return [
    button("+", "zoom in", () => diagram.zoom(0.6, diagram.middle())),
    button("−", "zoom out", () => diagram.zoom(1 / 0.6, diagram.middle())),
    button("all", "show all of it", () => diagram.whole()),
    button("↕+", "fewer workers", () => diagram.zoomRows(0.6)),
    button("↕−", "more workers", () => diagram.zoomRows(1 / 0.6)),
    button("◀", "the moment before", () => diagram.step(false)),
    button("▶", "the moment after", () => diagram.step(true)),
  ];
}

/** Return a button that lets the cursor run through the schedule, and stops it. */
function player(look, end, follow) {
  let before = null;
  const button = element("button", { type: "button", class: "play" }, "play");
  const stop = () => {
    before = null;
    button.textContent = "play";
  };
  const run = (now) => {
    if (before === null) return;
    look.moveTo(look.cursor + (end * (now - before)) / (1000 * PLAY_S));
    follow();
    before = now;
    if (look.cursor >= end) stop();
    else requestAnimationFrame(run);
  };
  button.addEventListener("click", () => {
    if (before !== null) {
      stop();
      return;
    }
    button.textContent = "pause";
    if (look.cursor >= end) look.moveTo(0);
    before = performance.now();
    requestAnimationFrame(run);
  });
  return button;
}

function slider(look, follow) {
  const range = element("input", { type: "range", min: 0, max: 1, step: "any", value: 0, "aria-label": "time" });
  const words = element("output", {});
  const show = () => {
    range.value = look.end ? look.cursor / look.end : 0;
    words.textContent = `at ${seconds(look.cursor)} of ${seconds(look.end)}`;
    range.setAttribute("aria-valuetext", words.textContent);
  };
  range.addEventListener("input", () => {
    look.moveTo(range.value * look.end);
    follow();
  });
  look.addEventListener("cursor", show);
  show();
  return element("div", { class: "cursor" }, range, words);
}

/** Return what colours and lines mean; the phases are buttons, and so is the path. */
function legendOf(schedule, look, diagram) {
  const phases = schedule.phases.map((name, at) => {
    const click = () => look.toggle("phase", name);
    const mark = element("i", { class: `${at ? "hatched" : "solid"} of-${Math.min(at, MANY.phase - 1)}` });
    const button = element("button", { type: "button", "aria-pressed": "false", "data-phase": name, click }, mark, ` ${name}`);
    look.addEventListener("filter", () => button.setAttribute("aria-pressed", String(look.filter.phase === name)));
    return button;
  });
  const path = element("button", { type: "button", "aria-pressed": "true" }, element("i", { class: "path" }), " the path that ended last");
  path.addEventListener("click", () => {
    diagram.withPath = !diagram.withPath;
    path.setAttribute("aria-pressed", String(diagram.withPath));
    diagram.changed();
  });
  const works = schedule.applied.some((time, row) => time > schedule.arrived[row]);
  const applying = element("span", { class: "bands" }, element("i", { class: "applying" }), " received, until it is applied");
  const legend = element("div", { class: "legend" }, ...phases, ...(diagram.path.length ? [path] : []), ...(works ? [applying] : []), ...keyOfChunks(schedule.chunks));
  diagram.onMode = (inLanes) => legend.classList.toggle("lanes", inLanes);
  return legend;
}

/** Return the colours of chunks, which come by turns, and what stands there where lanes have none. */
function keyOfChunks(chunks) {
  const marks = Array.from({ length: Math.min(chunks, MANY.chunk) }, (_, at) => element("i", { class: `chunk-${at}` }, String(at)));
  const turns = chunks > MANY.chunk ? ", and so on by turns" : "";
  return [
    element("span", { class: "bands" }, "chunks ", ...marks, turns),
    element("span", { class: "of-lanes" }, "too many to be told apart: the stronger, the more of the time; zoom in for transfers"),
  ];
}

function keyOfBuffers() {
  const key = (state, words) => element("span", {}, element("i", { class: "state", "data-state": state }), ` ${words}`);
  return element("p", { class: "legend" }, key("nothing", "nothing"), key("partial", "a part of the contributions, k/N"), key("complete", "complete"), element("span", {}, element("i", { class: "state", "data-moving": "leaving" }), " moving: → leaves, ← arrives"));
}

/** Show more transfers than can be drawn one by one: shares of time, and a cursor for the network. */
function showLanes(place, told, array, look) {
  const shares = array(told.shares);
  const size = told.rows * told.spans;
  const sums = told.phases.map((_, phase) => Float32Array.from(shares.subarray(phase * size, (phase + 1) * size), (share) => share / 255));
  const rows = told.each > 1 ? `${told.each} workers a row` : "a row for each worker";
  place.append(element("p", { class: "missing" }, `${count(told.transfers)} transfers are more than are drawn one by one: ${rows}, of stronger colour the more of its time it sends; transfers.csv has all.`));
  const cells = new Cells();
  const picture = new Picture(
    place,
    { role: "img", "aria-label": "How much each worker sends over time" },
    () => clamp(told.rows * 8, 160, 560),
    (context, width, height) => {
      const across = width - GUTTER - 6;
      shadeLanes(cells, { sums, width: told.spans, columns: told.spans, rows: told.rows });
      cells.paint(context, GUTTER, 0, across, height - AXIS);
      const x = GUTTER + (look.cursor / told.end_s) * across;
      context.strokeStyle = inks.cursor;
      line(context, [[x, 0], [x, height - AXIS]]);
      context.fillStyle = inks.ink;
      const marks = ticks(0, told.end_s, across / 110);
      timeLabels(marks, told.end_s).forEach((label, at) => context.fillText(label, GUTTER + (marks.values[at] / told.end_s) * across, height - AXIS + 14));
      context.fillText("worker 0", 6, 10);
      context.fillText(`worker ${told.rows * told.each - 1}`, 6, height - AXIS - 10);
    },
  );
  picture.canvas.addEventListener("click", (event) => look.moveTo(((picture.place(event).x - GUTTER) / (picture.width - GUTTER - 6)) * told.end_s));
  look.addEventListener("cursor", () => picture.ask());
  const names = told.phases.map((name, phase) => element("span", {}, element("i", { class: `phase-${phase}` }), ` ${name}`));
  place.append(slider(look, () => {}), element("p", { class: "legend" }, ...names));
}

/** Draw in the colours of paper while the page is printed, and of the screen when they change. */
function onPaper(sorted) {
  window.addEventListener("beforeprint", () => {
    for (const table of sorted) table.print();
    for (const picture of pictures) picture.fit();
    repaint();
  });
  window.addEventListener("afterprint", () => {
    for (const table of sorted) table.unprint();
    repaint();
  });
  for (const query of ["print", "(prefers-color-scheme: dark)"]) window.matchMedia(query).addEventListener("change", repaint);
}

start().catch((error) => {
  document.querySelector("main").prepend(element("p", { class: "missing", role: "alert" }, `The pictures and tables cannot be shown: ${error.message}`));
  throw error;
});
