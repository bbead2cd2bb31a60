// The frame: which page is shown, of which topic, in which colours, with which key.

import { ask, get, key, whenRefused } from "./api.js";
import { boards } from "./boards.js";
import { el } from "./dom.js";
import { engine } from "./engine.js";
import { explain } from "./explain.js";
import { live } from "./live.js";
import { subscriptions } from "./subscriptions.js";

const ROOMS = { live: ["Live", live], subscriptions: ["Subscriptions", subscriptions], explain: ["Explain", explain], boards: ["Boards", boards], engine: ["Engine", engine] };
const $ = (id) => document.getElementById(id);
const state = { topics: [], topic: null, settings: { open: false, tiles: null }, events: [], leave: null, again: 0 };

// What a page gets: the topic, the settings, ways to say something, and a signal that ends with it.
function place(signal) {
  const topic = state.topics.find((one) => one.name === state.topic);
  return { topic, settings: state.settings, signal, recent: state.events, say, go, parameters: new URLSearchParams(location.hash.split("?")[1] || "") };
}

function say(problem) {
  if (problem && problem.name === "AbortError") return;
  const said = problem ? String(problem.message || problem) : "";
  $("said").textContent = said;
  $("said").hidden = !said;
}

function go(room, given = {}) {
  const said = new URLSearchParams(given).toString();
  location.hash = `#/${room}${said ? `?${said}` : ""}`;
}

function show() {
  const name = location.hash.slice(2).split("?")[0];
  const room = ROOMS[name] ? name : "live";
  state.leave?.abort();
  state.leave = new AbortController();
  say(null);
  for (const link of $("rooms").children) {
    if (link.dataset.room === room) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${ROOMS[room][0]} · ${state.topic ?? "tidings"}`;
  const main = $("main");
  main.replaceChildren();
  if (state.topic === null) {
    main.append(el("h1", {}, "No topic yet"), el("p", { class: "note" }, "Make one with PUT /topics/{name}, or tidings init; docs/service.md says how."));
    return;
  }
  ROOMS[room][1](main, place(state.leave.signal));
}

async function enter() {
  clearTimeout(state.again);
  try {
    const { topics } = await get("/topics");
    state.topics = topics;
  } catch (problem) {
    if (problem.status === 401) return;
    say(problem);
    later(problem.status === undefined || problem.status >= 500);
    return;
  }
  const names = state.topics.map((one) => one.name);
  const wanted = sessionStorage.getItem("tidings-topic");
  state.topic = names.includes(wanted) ? wanted : names[0] ?? null;
  $("topic").replaceChildren(...names.map((name) => el("option", { selected: name === state.topic }, name)));
  show();
  later(!names.length);
}

// A service that has just begun is not ready, or has no topic yet.
function later(wanted) {
  if (wanted) state.again = setTimeout(enter, 1000);
}

function door(why) {
  if (why) $("door-why").textContent = why;
  if (!$("door").open) $("door").showModal();
}

function paint(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme === "dark" ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
  document.dispatchEvent(new Event("repaint"));
}

function colours() {
  const asked = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => localStorage.getItem("tidings-theme") ?? (asked.matches ? "dark" : "light");
  paint(chosen());
  asked.addEventListener("change", () => paint(chosen()));
  $("theme").addEventListener("click", () => {
    localStorage.setItem("tidings-theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    paint(chosen());
  });
}

async function begin() {
  colours();
  $("rooms").append(...Object.entries(ROOMS).map(([room, [name]]) => el("a", { href: `#/${room}`, "data-room": room }, name)));
  addEventListener("hashchange", () => {
    show();
    $("main").focus({ preventScroll: true });
  });
  $("topic").addEventListener("change", (change) => {
    state.topic = change.target.value;
    sessionStorage.setItem("tidings-topic", state.topic);
    state.events.length = 0;
    show();
  });
  $("key").addEventListener("click", () => door("Another key for this tab. An empty one leaves it."));
  $("door").addEventListener("close", () => {
    key.set($("door-key").value.trim());
    $("door-key").value = "";
    enter();
  });
  whenRefused((why) => door(key.get() ? why : undefined));
  state.settings = await ask("GET", "/console/settings");
  $("key").hidden = state.settings.open;
  enter();
}

begin().catch(say);
