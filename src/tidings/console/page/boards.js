// Boards: a watcher's list with each change, and the plane (l, r) on which range top-k paints its messages.

import { ask, get, listen, of, query, within } from "./api.js";
import { card, el, field, later, many, number, Rows } from "./dom.js";
import { numbersOf } from "./frames.js";
import { Plane } from "./plane.js";

export function boards(main, place) {
  const { topic, signal, say, parameters } = place;
  const watcher = el("select", { id: "watcher" });
  const list = new Rows("The watcher's list", [
    ["Rank", "number", (row) => row.rank],
    [topic.key ?? "Event", "long", (row) => row.event],
    ["Score", "number", (row) => number(row.score)],
    ["Last change", "", (row) => (row.why ? el("span", { class: "why" }, row.why) : "")],
  ], "The list is empty.");
  const changes = new Rows("Its last changes", [["Change", "", (note) => el("span", { class: "why" }, note.why)], [topic.key ?? "Event", "long", (note) => note.event], ["Score", "number", (note) => number(note.score)], ["Rank", "number", (note) => number(note.rank)]], "No change since the page was opened.");
  let [hearing, notes, held] = [null, [], new Map()];

  async function top(why) {
    const mine = hearing;
    const rows = (await get(of(topic.name, "subscriptions", watcher.value, "top"), signal)).top;
    if (mine !== hearing) return;
    const before = held;
    held = new Map(rows.map((row) => [row.event, row.score]));
    list.show(rows.map((row, at) => ({ ...row, rank: at + 1, why: why.get(row.event) })), { fresh: (row) => why.has(row.event) || (before.size > 0 && before.get(row.event) !== row.score) });
  }

  function watch() {
    hearing?.abort();
    hearing = within(signal);
    [notes, held] = [[], new Map()];
    changes.show(notes);
    let why = new Map();
    const again = later(() => { const since = why; why = new Map(); top(since).catch(() => {}); }, 80);
    again();
    listen(query(of(topic.name, "notifications"), { subscription: watcher.value }), hearing.signal, (name, note) => {
      if (name !== "notification") return;
      const event = typeof note.event === "object" ? note.event[topic.key ?? "id"] : note.event;
      why.set(event, note.why);
      notes = [{ ...note, event }, ...notes].slice(0, 8);
      changes.show(notes, { force: false, fresh: (one) => one === notes[0] });
      again();
    });
  }

  watcher.addEventListener("change", watch);
  const watchers = get(query(of(topic.name, "subscriptions"), { limit: 500 }), signal).then((page) => page.subscriptions.filter((one) => one.k !== undefined));
  const plane = topic.key && numbersOf(topic).length > 0;
  const lists = card("A watcher's list", el("label", { class: "note" }, "of ", watcher), list.element);
  const told = card("Its last changes", null, changes.element);
  main.append(el("div", { class: "head" }, el("h1", {}, "Boards"), el("p", {}, topic.key ? `The best of the current objects of ${topic.name}, by ${topic.key}` : `${topic.name} has no key: its lists are the best of a window`)));
  main.append(el("div", { class: plane ? "grid two" : "grid" }, el("div", { class: "column" }, lists, told), plane ? painted(place, watchers) : null));

  watchers.then((found) => {
    watcher.replaceChildren(...found.map((one) => el("option", { selected: one.id === parameters.get("id") }, one.id)));
    if (found.length) watch();
  }).catch(say);
}

function painted(place, watchers) {
  const { topic, signal, say } = place;
  const numbers = [...new Set(numbersOf(topic))];
  const attribute = el("select", {}, numbers.map((name) => el("option", {}, name)));
  const by = el("input", { value: `-${numbers[0]}`, size: "8" });
  const k = el("input", { type: "number", min: "1", max: "50", value: "3" });
  const said = el("p", { class: "note", id: "painted", role: "status" }, "Waiting for a change …");
  const plane = new Plane(topic.schema, signal);
  let [looking, ranges] = [null, []];

  // What most of those who watch ask for comes first.
  async function begin() {
    const some = (await watchers).slice(0, 60);
    const asked = some.map((one) => ask("POST", of(topic.name, "check"), { filter: one.filter ?? null }, signal));
    ranges = (await Promise.all(asked)).map((answer) => answer.ranges ?? {});
    attribute.value = usual(ranges.flatMap((one) => Object.keys(one)).filter((name) => numbers.includes(name))) ?? numbers.at(-1);
    by.value = usual(some.map((one) => one.by).filter((rank) => typeof rank === "string")) ?? by.value;
    k.value = usual(some.map((one) => one.k).filter((most) => most >= 1 && most <= 50)) ?? k.value;
    look();
  }

  function look() {
    looking?.abort();
    looking = within(signal);
    plane.use(attribute.value);
    plane.watch(ranges.map((one) => one[attribute.value]).filter(Boolean));
    listen(query(of(topic.name, "painted"), { attribute: attribute.value, by: by.value, k: k.value }), looking.signal, (name, seen) => {
      if (name !== "look" || !seen.changes.length) return;
      plane.add(seen.changes);
      const [first] = seen.changes;
      said.textContent = `${first.object}: ${many(first.messages, "message")}; ${many(seen.objects, "object")}`;
    }, (state, problem) => state === "refused" && say(problem));
  }

  const again = later(look, 300);
  for (const input of [attribute, by, k]) input.addEventListener("input", again);
  begin().catch(say);
  return card("The painted plane", said,
    el("p", { class: "note" }, "A watcher of [l, r] is a dot. Each change of an object is told by a few rectangles: whoever stands in one has to hear of it."),
    plane.element, el("div", { class: "fields" }, field("Interval of", attribute), field("Ranked by", by), field("k", k)));
}

// What comes most often.
function usual(values) {
  const times = new Map();
  for (const value of values) times.set(value, (times.get(value) ?? 0) + 1);
  return [...times].sort((a, b) => b[1] - a[1])[0]?.[0];
}
