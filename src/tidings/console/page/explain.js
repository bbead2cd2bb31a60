// Explain: an event and a subscription, why or why not; or an event alone, what each step of matching left over.

import { ask, get, listen, of, query, within } from "./api.js";
import { card, count, el, field, later, number, Rows } from "./dom.js";

export function explain(main, place) {
  const { topic, signal, say, parameters, recent } = place;
  const event = el("textarea", { name: "event", rows: "9", spellcheck: "false" });
  const known = el("datalist", { id: "known" });
  const subscription = el("input", { name: "subscription", list: "known", autocomplete: "off", placeholder: "none: the event alone" });
  const picked = el("select", { onchange: (change) => { event.value = pretty(events[change.target.value]); } });
  const answer = el("div", { class: "column", role: "status", id: "answer" }, el("p", { class: "note" }, "The answer comes here."));
  let events = recent.map((one) => one.event).reverse().slice(0, 30);

  function pick() {
    picked.replaceChildren(...events.map((one, at) => el("option", { value: at }, `${one[topic.key ?? "id"]}  ${JSON.stringify(one).slice(0, 60)}`)));
    if (!event.value && events.length) event.value = pretty(events[0]);
  }

  async function asked() {
    const id = subscription.value.trim();
    let body = event.value;
    try {
      body = JSON.parse(body);
    } catch (problem) {
      throw new Error(`The event is no JSON: ${problem.message}`);
    }
    const found = await ask("POST", query(of(topic.name, "explain"), { subscription: id, k: 10 }), body, signal);
    answer.replaceChildren(...(id ? pair(found) : alone(found)));
    say(null);
  }

  const suggest = later(() => {
    const found = get(query(of(topic.name, "subscriptions"), { text: subscription.value, limit: 20 }), signal);
    found.then((page) => known.replaceChildren(...page.subscriptions.map((one) => el("option", { value: one.id })))).catch(say);
  }, 200);
  subscription.addEventListener("input", () => suggest());
  const form = el("form", { onsubmit: (submit) => { submit.preventDefault(); asked().catch(say); } },
    field("Pick one that came", picked), field("Event, JSON", event), field("Subscription", subscription), known,
    el("div", { class: "acts" }, el("button", { class: "main" }, "Explain"),
      el("button", { type: "button", onclick: () => { subscription.value = ""; asked().catch(say); } }, "The event alone")));
  main.append(el("div", { class: "head" }, el("h1", {}, "Explain"), el("p", {}, "Why somebody hears of an event, or does not.")),
    el("div", { class: "grid two" }, card("What is asked", null, form), answer));

  if (parameters.get("event")) event.value = pretty(JSON.parse(parameters.get("event")));
  if (parameters.get("subscription")) subscription.value = parameters.get("subscription");
  pick();
  suggest();
  if (event.value && parameters.get("event")) asked().catch(say);
  if (!events.length) {
    const waiting = within(signal);
    listen(of(topic.name, "flow"), waiting.signal, (name, look) => {
      events.push(...look.sample.map((one) => one.event));
      if (events.length) waiting.abort();
      pick();
    });
  }
}

const pretty = (value) => JSON.stringify(value, null, 1);

function pair(found) {
  const verdict = el("p", { class: found.matched ? "verdict yes" : "verdict no" }, found.matched ? `${found.subscription} hears of ${found.event}` : `${found.subscription} does not hear of ${found.event}`);
  const fails = found.failed.length || found.matched ? found.failed : [found.reason];
  const part = (kind, said) => el("li", { class: kind }, el("span", { class: "unseen" }, kind === "yes" ? "Holds: " : "Fails: "), said);
  const parts = el("ul", { class: "parts" }, fails.map((said) => part("no", said)), found.held.map((said) => part("yes", said)));
  const clauses = found.home.length;
  const scores = new Rows("Its score in parts", [["Part", "long", (row) => row[0]], ["Adds", "number", (row) => number(row[1])]], "");
  scores.show(Object.entries(found.score_parts));
  const homes = new Rows("Where its clauses stand", [["Clause", "number", (row) => row.clause], ["Home", "", (row) => row.home], ["The event reached it", "", (row) => (row.reached ? "yes" : "no")]], "It has no clause in a home.");
  homes.show(found.home.map((home, at) => ({ clause: at + 1, home, reached: found.reached[at] })));
  const nearest = clauses > 1 ? `Part by part, of the ${found.matched ? "clause that holds" : `nearest of ${count(clauses)} clauses`}` : "Part by part";
  const shown = [card(found.matched ? "Why" : "Why not", nearest, verdict, parts, found.hears ? el("p", { class: "note" }, `It hears ${found.hears}.`) : null)];
  if (found.matched) shown.push(card(`Score ${number(found.score)}`, null, scores.element));
  if (found.failures) shown.push(card("Without an answer", null, el("p", {}, `Its filter, score or by had no finite answer ${count(found.failures)} times so far.`)));
  return [...shown, card("Homes", "The access path that holds each clause", homes.element)];
}

function alone(found) {
  const steps = Object.entries(found.steps);
  const most = Math.max(1, ...steps.map(([, left]) => left));
  const bars = steps.map(([name, left]) => {
    const bar = el("span");
    bar.style.width = `${(100 * Math.log1p(left)) / Math.log1p(most)}%`;
    return el("div", {}, el("span", {}, name), el("span", { class: "track", "aria-hidden": "true" }, bar), el("span", {}, count(left)));
  });
  return [
    card("What each step leaves over", "bars are logarithmic", el("div", { class: "bars" }, bars)),
    card("Ways to the ten best, with their prices", null, el("pre", {}, found.plans.join("\n") || "No way: there is nothing to match.")),
  ];
}
