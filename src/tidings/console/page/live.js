// Live: what comes, where, who hears of it and why; how many a second and how long it takes.

import { listen, of, within } from "./api.js";
import { Chart } from "./chart.js";
import { card, clock, count, el, many, number, Rows } from "./dom.js";
import { frameOf, numbersOf, placeOf } from "./frames.js";
import { Plot } from "./plot.js";

const NEWEST = 14;
const SECOND = 1000;

export function live(main, place) {
  const { topic, settings, signal, recent } = place;
  let axes = placeOf(topic) ? null : numbersOf(topic).slice(0, 2);
  let [plot, drawing] = [null, null];
  const status = el("p", { id: "live-state" }, "Waiting for events …");
  const sampled = el("p", { class: "note", id: "sampled" }, "Every event is drawn.");
  const holder = el("div");
  const rates = new Chart("Events and notifications a second", [["events/s", "--dot"], ["told/s", "--lit"]], "", signal);
  const waits = new Chart("Milliseconds from publishing to commit", [["median", "--dot"], ["slowest", "--lit"]], " ms", signal);
  const rows = new Rows("Newest notifications", [
    ["Subscription", "long", (note) => el("button", { type: "button", class: "link", onclick: () => place.go("subscriptions", { id: note.subscription }) }, note.subscription)],
    ["Event", "long", (note) => note.event],
    ["Score", "number", (note) => number(note.score)],
    ["Rank", "number", (note) => number(note.rank)],
    ["Why", "", (note) => el("span", { class: "why" }, note.why)],
    ["At", "number", (note) => clock(note.at)],
    ["", "number", (note) => (note.body ? el("button", { type: "button", class: "small", "aria-label": `Explain ${note.event} to ${note.subscription}`, onclick: () => place.go("explain", { event: JSON.stringify(note.body), subscription: note.subscription }) }, "Explain") : "")],
  ], "Nobody was told anything since this page was opened.");

  function drawn() {
    drawing?.abort();
    drawing = within(signal);
    plot = new Plot({ label: axes ? `Events by ${axes.join(" and ")}` : "Map of events", frame: frameOf(topic, axes), settings, signal: drawing.signal });
    holder.replaceChildren(plot.element);
    plot.add(recent.map(({ event, told }) => ({ at: plot.frame.point(event), told })));
    plot.fit();
  }

  const choices = [...(placeOf(topic) ? [["", "the map"]] : []), ...pairs(numbersOf(topic))];
  const choice = el("select", { "aria-label": "Drawn on", onchange: (change) => { axes = change.target.value ? change.target.value.split("\n") : null; drawn(); } }, choices.map(([value, name]) => el("option", { value }, name)));
  main.append(
    el("div", { class: "head" }, el("h1", {}, "Live"), status),
    el("div", { class: "grid wide" },
      card("Events as they come", el("label", { class: "note" }, "on ", choice), holder, el("div", { class: "keys" }, el("span", {}, el("i"), "came"), el("span", {}, el("i", { class: "lit" }), "somebody was told"), sampled)),
      el("div", { class: "column" }, card("A second", null, rates.element), card("From publishing to commit", null, waits.element))),
    el("div", { class: "grid", id: "newest" }, card("Newest notifications", "They stand still while you point at them.", rows.element)));
  main.lastChild.style.marginTop = "1.25rem";
  drawn();

  let notes = [];
  const sum = { events: 0, told: 0, shown: 0, seconds: 0, waits: [] };
  const heard = (name, look) => {
    if (name === "notification") look = lookOf(look);
    else if (name !== "look") return;
    sum.events += look.events;
    sum.told += look.told;
    sum.shown += look.sample.length;
    sum.seconds += look.seconds;
    if (look.waits) sum.waits.push(look.waits);
    if (look.sample.length) {
      const first = !plot.points.length;
      plot.add(look.sample.map(({ event, told }) => ({ at: plot.frame.point(event), told })));
      if (first || plot.points.length < 400) plot.fit();
      recent.push(...look.sample);
      recent.splice(0, Math.max(0, recent.length - 40));
    }
    if (look.newest.length) {
      const fresh = new Set(look.newest);
      notes = [...look.newest, ...notes].slice(0, NEWEST);
      rows.show(notes, { force: false, fresh: (note) => fresh.size <= 6 && fresh.has(note) });
    }
  };
  const beat = setInterval(() => {
    const seconds = Math.max(sum.seconds, 1);
    rates.add(sum.events / seconds, sum.told / seconds);
    const middles = sum.waits.map((wait) => wait[0]).sort((a, b) => a - b);
    waits.add(middles.length ? middles[middles.length >> 1] : null, middles.length ? Math.max(...sum.waits.map((wait) => wait[1])) : null);
    status.textContent = `${many(Math.round(sum.events / seconds), "event")} a second, ${count(Math.round(sum.told / seconds))} told`;
    sampled.textContent = sum.shown < sum.events ? `Sampled: ${count(sum.shown)} of the last ${count(sum.events)} events are drawn, each with the same chance.` : "Every event is drawn.";
    Object.assign(sum, { events: 0, told: 0, shown: 0, seconds: 0, waits: [] });
  }, SECOND);
  signal.addEventListener("abort", () => clearInterval(beat));
  listen(of(topic.name, "flow"), signal, heard, (state, problem) => {
    if (state === "away") status.textContent = "The service is away; trying again …";
    else if (state === "refused" && problem.status === 403) {
      status.textContent = "This key hears its owner's notifications alone.";
      listen(of(topic.name, "notifications"), signal, heard);
    } else if (state === "refused") place.say(problem);
  });
}

function pairs(names) {
  return names.flatMap((x, at) => names.slice(at + (names.length > 1 ? 1 : 0)).map((y) => [`${x}\n${y}`, `${x} and ${y}`]));
}

// A notification alone, as a look: what an owner's key may see.
function lookOf(note) {
  const body = typeof note.event === "object" ? note.event : null;
  const newest = [{ ...note, event: body ? body.id ?? note.event : note.event, body }];
  return { events: 1, told: 1, seconds: 0, waits: null, sample: body ? [{ event: body, told: 1 }] : [], newest };
}
