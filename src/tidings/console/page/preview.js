// A preview: how often a subscription would have fired over the live events, and the first ten with their reasons.

import { ask, of } from "./api.js";
import { about, card, clock, count, el, later, many, number, Rows } from "./dom.js";

const FIELDS = ["filter", "score", "k", "window", "by"];

export class Tried {
  constructor({ topic, signal }, shown) {
    this.shown = shown;
    this.topic = topic;
    this.signal = signal;
    this.number = 0;
    this.said = el("p", { class: "note", role: "status", id: "preview" }, "");
    this.rows = new Rows("The first ten it would have told", [
      ["Event", "long", (note) => note.event],
      ["Score", "number", (note) => number(note.score)],
      ["Why", "", (note) => el("span", { class: "why" }, note.why)],
      ["Reason", "long", (note) => note.reason.replace(/^.*?; home [^;]*;? ?/, "") || "every event"],
      ["At", "number", (note) => clock(note.at)],
    ], "It would have told nothing.");
    this.over = el("select", { onchange: () => this.fetch(this.given) }, ["1 hour", "1 day", "7 days", "30 days"].map((name) => el("option", { selected: name === "7 days" }, name)));
    this.element = card("Would have told", el("label", { class: "note" }, "over the last ", this.over), this.said, this.rows.element);
    this.ask = later((given) => this.fetch(given), 350);
  }

  async fetch(given) {
    const mine = ++this.number;
    this.given = given;
    this.said.textContent = "Asking …";
    const asked = Object.fromEntries(Object.entries(given).filter(([name]) => FIELDS.includes(name)));
    try {
      const seen = await ask("POST", of(this.topic.name, "preview"), { ...asked, over: this.over.value }, this.signal);
      if (mine !== this.number) return;
      this.said.textContent = `${count(seen.told)} of ${many(seen.events, "live event")}, about ${about(seen.a_day)} a day`;
      this.rows.show(seen.first);
      this.shown(seen.first);
    } catch (problem) {
      if (mine === this.number && problem.name !== "AbortError") {
        this.said.textContent = "";
        this.rows.show([]);
      }
    }
  }
}
