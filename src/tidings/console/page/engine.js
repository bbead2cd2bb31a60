// Engine: what a topic is made of and what it costs; who listens, where notifications go, what was not taken, who has keys.

import { ask, get, of, query } from "./api.js";
import { bytes, card, count, el, number, Rows } from "./dom.js";

const LOOK = 2000;
const FIGURES = ["Subscriptions", "In the memtable", "Live events", "Published", "Bytes of segments", "Segments", "Merges", "Readers", "Listeners", "Notifications", "Candidates an event", "Matches an event"];

export function engine(main, place) {
  const { topic, signal, say } = place;
  const figures = Object.fromEntries(FIGURES.map((name) => [name, el("dd", {}, "–")]));
  const segments = new Rows("Segments", [["Segment", "number", (row) => row.number], ["Subscriptions", "number", (row) => count(row.subscriptions)], ["Live", "number", (row) => count(row.live)], ["Clauses", "number", (row) => count(row.clauses)], ["Bytes", "number", (row) => bytes(row.bytes)]], "Nothing is packed yet: all is in the memtable.");
  const homes = new Rows("Homes", [["Home", "", (row) => row.home], ["Segment", "number", (row) => row.segment], ["Clauses", "number", (row) => count(row.clauses)], ["Bytes", "number", (row) => bytes(row.bytes)], ["Candidates", "number", (row) => (row.candidates === undefined ? "" : count(row.candidates))], ["Matches", "number", (row) => (row.matches === undefined ? "" : count(row.matches))]], "No clause has a home yet.");
  const sinks = new Rows("Sinks", [["Sink", "long", (row) => row.name], ["Kind", "", (row) => row.kind], ["To", "text", (row) => row.url ?? row.channel ?? row.topic ?? ""], ["Behind", "number", (row) => count(row.behind)], ["Delivered", "number", (row) => count(row.delivered ?? 0)], ["Lost", "number", (row) => count(row.lost ?? 0)], ["State", "", (row) => (row.failing ? "failing" : row.status)], ["Dead letters", "number", (row) => el("button", { type: "button", class: "link", onclick: () => { letter = row.name; letters().catch(say); } }, count(row.dead_letters))]], "No sink: notifications are heard, not sent.");
  const dead = new Rows("Dead letters", [["Number", "number", (row) => row.number], ["Subscription", "long", (row) => row.subscription ?? row.notification?.subscription ?? ""], ["Reason", "long", (row) => row.reason ?? ""], ["", "number", (row) => el("button", { type: "button", class: "small", "aria-label": `Send letter ${row.number} again`, onclick: () => resend([row.number]).catch(say) }, "Send again")]], "No dead letter.");
  const keys = new Rows("Keys", [["Key", "", (row) => row.id], ["Name", "long", (row) => row.name ?? ""], ["Scopes", "", (row) => row.scopes.join(", ")], ["Owner", "", (row) => row.owner ?? ""], ["Quotas", "", (row) => Object.entries(row.quotas ?? {}).filter(([, most]) => most !== null).map(([name, most]) => `${name} ${most}`).join(", ")]], "No key.");
  const slow = new Rows("Slowest filters", [["Subscription", "long", (row) => el("button", { type: "button", class: "link", onclick: () => place.go("subscriptions", { id: row.subscription }) }, row.subscription)], ["µs an event", "number", (row) => number(row.microseconds)], ["Clauses", "number", (row) => count(row.clauses)], ["Price", "number", (row) => count(row.price)], ["Filter", "text code", (row) => row.filter ?? ""]], "Not timed yet.");
  const timed = el("p", { class: "note", role: "status" });
  const sent = el("p", { class: "note", role: "status", id: "sent" });
  let letter = null;

  async function look() {
    const [stats, whole] = await Promise.all([get(of(topic.name, "stats"), signal), get("/engine", signal)]);
    const here = whole.topics[topic.name] ?? {};
    const shown = [stats.subscriptions, stats.memtable, stats.events, stats.published, bytes(stats.bytes), stats.segments.length, stats.merges, whole.readers, here.listeners ?? 0, here.told ?? 0, number(stats.matching["candidates an event"]), number(stats.matching["matches an event"])];
    FIGURES.forEach((name, at) => { figures[name].textContent = typeof shown[at] === "number" ? count(shown[at]) : shown[at]; });
    segments.show(stats.segments.map((one, at) => ({ ...one, number: at + 1 })));
    homes.show(stats.segments.flatMap((one, at) => Object.entries(one.homes).map(([home, held]) => ({ home, segment: at + 1, ...held }))));
    const found = (await get(of(topic.name, "sinks"), signal)).sinks;
    sinks.show(found, { force: false });
    if (letter === null) letter = found.find((one) => one.dead_letters)?.name ?? null;
    await letters();
  }

  async function letters() {
    letterCard.hidden = letter === null;
    if (letter === null) return;
    letterCard.querySelector("h2").textContent = `Dead letters of ${letter}`;
    dead.show((await get(query(of(topic.name, "sinks", letter, "dead-letters"), { limit: 20 }), signal)).dead_letters, { force: false });
  }

  async function resend(numbers) {
    const answer = await ask("POST", of(topic.name, "sinks", letter, "dead-letters", "resend"), numbers ? { numbers } : {}, signal);
    sent.textContent = answer.failed.length ? `${count(answer.sent)} taken; not taken: ${answer.failed[0].reason}` : `${count(answer.sent)} taken.`;
    document.activeElement?.blur();
    await look();
  }

  async function time() {
    timed.textContent = "Timing …";
    const found = await get(query(of(topic.name, "slowest"), { limit: 10 }), signal);
    slow.show(found.slowest);
    timed.textContent = `of ${count(found.looked_at)} subscriptions, each alone over ${count(found.events)} live events`;
  }

  const act = (name, path) => el("button", { type: "button", onclick: () => ask("POST", of(topic.name, path), undefined, signal).then(look).catch(say) }, name);
  const letterCard = card("Dead letters", el("button", { type: "button", onclick: () => resend(null).catch(say) }, "Send all again"), dead.element, sent);
  const keyCard = card("Keys", "Kept as hashes; shown once when they are made", keys.element);
  letterCard.hidden = keyCard.hidden = true;
  main.append(el("div", { class: "head" }, el("h1", {}, "Engine"), el("p", {}, `${topic.name}, every two seconds`)),
    el("div", { class: "column" },
      card("In numbers", null, el("dl", { class: "figures" }, FIGURES.map((name) => el("div", {}, el("dt", {}, name), figures[name])))),
      el("div", { class: "grid two" },
        card("Segments", el("div", { class: "acts" }, act("Pack what is new", "flush"), act("Merge", "merge")), segments.element), card("Homes", "Where packed clauses stand", homes.element)),
      card("Sinks", null, sinks.element), letterCard,
      el("div", { class: "grid two" }, card("Slowest filters", el("button", { type: "button", onclick: () => time().catch(say) }, "Time them now"), slow.element, timed), keyCard)));

  const beat = setInterval(() => look().catch(say), LOOK);
  signal.addEventListener("abort", () => clearInterval(beat));
  look().catch(say);
  get("/keys", signal).then((found) => { keyCard.hidden = false; keys.show(found.keys); }).catch(() => {});
}
