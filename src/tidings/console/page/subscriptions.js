// Subscriptions: found, read, written, drawn, tried out, moved.

import { ask, get, listen, of, query, within } from "./api.js";
import { card, clock, count, el, field, later, number, Rows } from "./dom.js";
import { literals, withShape } from "./filters.js";
import { boundsOf, boxRing, frameOf, placeOf, ringsOf } from "./frames.js";
import { Plot } from "./plot.js";
import { Tried } from "./preview.js";

export function subscriptions(main, place) {
  const { topic, signal, say } = place;
  const at = placeOf(topic);
  let [chosen, known, cursor] = [null, [], null];

  // Found
  const texts = el("input", { type: "search", name: "text", placeholder: "in the id or the filter" });
  const owners = el("input", { type: "search", name: "owner" });
  const tags = el("input", { type: "search", name: "tag" });
  const more = el("button", { type: "button", hidden: true, onclick: () => find(cursor) }, "More");
  const found = new Rows("Subscriptions", [
    ["Id", "long", (one) => el("button", { type: "button", class: "link", onclick: () => choose(one.id) }, one.id)],
    ["Owner", "text", (one) => one.owner ?? ""],
    ["Tags", "text", (one) => (one.tags ?? []).join(", ")],
    ["Filter", "text code", (one) => (typeof one.filter === "string" ? one.filter : JSON.stringify(one.filter ?? one.clauses ?? null))],
    ["List", "", (one) => (one.k === undefined ? "" : `${one.k} best${one.window ? ` of ${one.window}` : ""}`)],
  ], "None is found.");
  found.element.classList.add("tall");

  async function find(after = null) {
    const asked = { text: texts.value, owner: owners.value, tag: tags.value, cursor: after, limit: 50 };
    const page = await get(query(of(topic.name, "subscriptions"), asked), signal);
    known = after ? [...known, ...page.subscriptions] : page.subscriptions;
    cursor = page.cursor;
    more.hidden = cursor === null;
    listed();
  }

  const listed = () => found.show(known, { chosen: (one) => one.id === chosen });
  const search = later(() => find().catch(say), 200);
  for (const input of [texts, owners, tags]) input.addEventListener("input", search);

  // Written
  const fields = Object.fromEntries(["id", "owner", "tags", "k", "window", "by", "score"].map((name) => [name, el("input", { name, autocomplete: "off", spellcheck: "false" })]));
  fields.k.inputMode = "numeric";
  const filter = el("textarea", { name: "filter", rows: "4", spellcheck: "false", "aria-describedby": "check", placeholder: "price < 500 AND brand = 'Alba'" });
  const checked = el("p", { class: "check", id: "check", role: "status" });

  function said() {
    const given = { filter: filter.value.trim() || null };
    for (const name of ["owner", "window", "by"]) if (fields[name].value.trim()) given[name] = fields[name].value.trim();
    if (fields.tags.value.trim()) given.tags = fields.tags.value.split(",").map((tag) => tag.trim()).filter(Boolean);
    if (fields.k.value.trim()) given.k = Number(fields.k.value);
    const score = fields.score.value.trim();
    if (score) given.score = Number.isFinite(Number(score)) ? Number(score) : score;
    return given;
  }

  async function check() {
    const answer = await ask("POST", of(topic.name, "check"), said(), signal);
    checked.className = answer.accepted ? "check yes" : "check no";
    if (!answer.accepted) checked.textContent = answer.detail;
    else checked.textContent = answer.warnings[0] ?? `Accepted: ${answer.clauses === 1 ? "one clause" : `${count(answer.clauses)} clauses`}${answer.attributes.length ? ` on ${answer.attributes.join(", ")}` : ", every event"}; price ${count(answer.price)}.`;
    if (answer.accepted) draw(answer.shapes.map(ringsOf));
  }

  const typed = later(() => check().catch(say), 150);
  const written = () => { typed(); tried.ask(said()); };
  filter.addEventListener("input", written);
  for (const name of ["k", "window", "by", "score"]) fields[name].addEventListener("input", written);

  // Drawn
  const plot = new Plot({ label: "Map of the subscription", frame: frameOf(topic), settings: place.settings, signal, low: true });
  const modes = el("div", { class: "acts", role: "group", "aria-label": "What the pointer does" });
  function use(mode) {
    plot.use(mode);
    for (const button of modes.querySelectorAll("button[aria-pressed]")) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
  }
  for (const [mode, name] of [["look", "Move"], ["box", "Draw a box"], ["polygon", "Draw a polygon"]]) {
    modes.append(el("button", { type: "button", "data-mode": mode, "aria-pressed": String(mode === "look"), onclick: () => use(mode) }, name));
  }
  modes.append(el("button", { type: "button", onclick: () => take({ bbox: plot.seen() }) }, "Take what is seen"));
  const take = (shape) => { filter.value = withShape(filter.value, at, shape); use("look"); written(); };
  const draw = (shapes) => { plot.set(shapes.map((rings) => ({ rings, kind: "chosen", movable: true }))); plot.fit(); };
  plot.drawn = take;
  plot.moved = (shape, by) => {
    const box = boundsOf(plot.shapes.flatMap((one) => one.rings));
    move([(box[0] + box[2]) / 2 + by[0], (box[1] + box[3]) / 2 + by[1]], by).catch((problem) => { say(problem); written(); });
  };
  const [east, north] = [el("input", { inputmode: "decimal", size: "9" }), el("input", { inputmode: "decimal", size: "9" })];
  const mover = el("form", { class: "fields", onsubmit: (event) => { event.preventDefault(); move([Number(east.value), Number(north.value)]).catch(say); } },
    field(plot.frame.names[0] ?? "x", east), field(plot.frame.names[1] ?? "y", north), el("button", {}, "Move it there"));

  // One that is saved is moved at the service; one that is not, in its text.
  async function move(point, by = null) {
    if (chosen === null) {
      if (by && plot.shapes.length === 1 && literals(filter.value).length === 1) {
        const rings = plot.shapes[0].rings.map((ring) => ring.map(([x, y]) => [x + by[0], y + by[1]]));
        take(rings[0].length === 5 && boxed(rings[0]) ? { bbox: boundsOf(rings) } : { type: "Polygon", coordinates: rings });
      }
      return;
    }
    await ask("POST", of(topic.name, "subscriptions", chosen, "move"), { point }, signal);
    await choose(chosen);
  }

  // Its list
  const list = new Rows("Its list", [["Rank", "number", (row) => row.rank], ["Event", "long", (row) => row.event], ["Score", "number", (row) => number(row.score)]], "Nothing is in its list.");
  const told = new Rows("What it was told", [["Event", "long", (note) => note.event], ["Score", "number", (note) => number(note.score)], ["Rank", "number", (note) => number(note.rank)], ["Why", "", (note) => el("span", { class: "why" }, note.why)], ["At", "number", (note) => clock(note.at)]], "Nothing since it was chosen.");
  let [hearing, notes] = [null, []];
  const tried = new Tried(place, (notes) => { plot.add(notes.map((note) => ({ at: note.body && plot.frame.point(note.body), told: 1 }))); plot.fit(); });
  const lists = card("Its list, as it changes", null, list.element);
  const hears = card("What it is told", null, told.element);

  async function top(before = null) {
    const rows = (await get(of(topic.name, "subscriptions", chosen, "top"), signal)).top.map((row, number) => ({ ...row, rank: number + 1 }));
    list.show(rows, { fresh: (row) => before !== null && !before.has(row.event) });
    return new Set(rows.map((row) => row.event));
  }

  function hear(id) {
    hearing?.abort();
    hearing = within(signal);
    notes = [];
    told.show(notes);
    let held = null;
    const again = later(async () => { held = await top(held).catch(() => held); }, 120);
    again();
    listen(query(of(topic.name, "notifications"), { subscription: id }), hearing.signal, (name, note) => {
      if (name !== "notification") return;
      const event = typeof note.event === "object" ? note.event[topic.key ?? "id"] : note.event;
      notes = [{ ...note, event }, ...notes].slice(0, 10);
      told.show(notes, { force: false, fresh: (one) => one === notes[0] });
      again();
    });
  }

  // Chosen
  async function choose(id) {
    const one = await get(of(topic.name, "subscriptions", id), signal);
    chosen = one.id;
    for (const name of ["id", "owner", "k", "window", "by", "score"]) fields[name].value = one[name] === undefined ? "" : typeof one[name] === "object" ? JSON.stringify(one[name]) : one[name];
    fields.tags.value = (one.tags ?? []).join(", ");
    filter.value = typeof one.filter === "string" ? one.filter : one.filter ? JSON.stringify(one.filter, null, 1) : "";
    const boxes = (one.clauses ?? []).map((clause) => clause.box).filter(Boolean);
    if (one.centre && boxes.length === 1 && literals(filter.value).length === 1) filter.value = withShape(filter.value, at, { bbox: boxes[0] });
    remove.hidden = hears.hidden = false;
    lists.hidden = one.k === undefined;
    mover.hidden = at === null;
    plot.held = false;
    listed();
    written();
    if (boxes.length && !literals(filter.value).length) draw([boxes.map(boxRing)]);
    hear(chosen);
    say(null);
  }

  function fresh() {
    chosen = null;
    hearing?.abort();
    for (const input of Object.values(fields)) input.value = "";
    filter.value = "";
    remove.hidden = lists.hidden = hears.hidden = mover.hidden = true;
    plot.set([]);
    listed();
    written();
    fields.id.focus();
  }

  async function save() {
    const id = fields.id.value.trim();
    if (!id) throw new Error("It needs an id.");
    const answer = await ask("PUT", of(topic.name, "subscriptions", id), said(), signal);
    await Promise.all([find(), choose(id)]);
    checked.textContent = answer.warnings?.[0] ?? "Saved.";
  }

  async function drop() {
    await ask("DELETE", of(topic.name, "subscriptions", chosen), undefined, signal);
    fresh();
    await find();
  }

  const remove = el("button", { type: "button", hidden: true, onclick: () => drop().catch(say) }, "Unsubscribe");
  const form = el("form", { onsubmit: (event) => { event.preventDefault(); save().catch(say); } },
    el("div", { class: "fields" }, field("Id", fields.id), field("Owner", fields.owner), field("Tags, by commas", fields.tags)),
    field("Filter, CQL2", filter), checked,
    el("div", { class: "fields" }, field("Best k", fields.k), field("Window", fields.window), field("Ranked by", fields.by), field("Score", fields.score)),
    el("div", { class: "acts" }, el("button", { class: "main" }, "Save"), el("button", { type: "button", onclick: fresh }, "New"), remove));
  const maps = at === null ? [] : [card("Where", modes, plot.element, mover)];
  mover.style.marginTop = ".8rem";
  main.append(el("div", { class: "head" }, el("h1", {}, "Subscriptions"), el("p", {}, `${count(topic.subscriptions)} in ${topic.name}`)),
    el("div", { class: "grid two" },
      el("div", { class: "column" },
        card("Find", null, el("div", { class: "form" }, el("div", { class: "fields" }, field("Text", texts), field("Owner", owners), field("Tag", tags)), found.element, el("div", { class: "acts" }, more))),
        lists, hears),
      el("div", { class: "column" }, card("The subscription", null, form), ...maps, tried.element)));
  remove.hidden = lists.hidden = hears.hidden = mover.hidden = true;
  find().catch(say);
  check().catch(say);
  tried.ask(said());
  if (place.parameters.get("id")) choose(place.parameters.get("id")).catch(say);
}

const boxed = (ring) => new Set(ring.map((corner) => corner[0])).size === 2 && new Set(ring.map((corner) => corner[1])).size === 2;
