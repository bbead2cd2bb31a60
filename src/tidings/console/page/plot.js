// A plot: points that come and fade, shapes over a ground, a view that is moved by pointer, touch and keys; and hands that draw.

import { el } from "./dom.js";
import { boundsOf, boxRing, inside } from "./frames.js";
import { Ground } from "./ground.js";

const KEPT = 1500;
const FADE = 30_000;
// Degrees that a map of points shows at least, so that some coast or border says where it is.
const FEWEST = 3;

export class Plot {
  constructor({ label, frame, settings, signal, low = false }) {
    this.frame = frame;
    this.points = [];
    this.shapes = [];
    this.draft = null;
    this.mode = "look";
    this.drawn = () => {};
    this.moved = () => {};
    this.held = false;
    this.view = frame.kind === "globe" ? { u: 8, v: 30, su: 2, sv: 2 } : { u: 0, v: 0, su: 1, sv: 1 };
    this.under = document.createElement("canvas");
    this.canvas = el("canvas", { "aria-hidden": "true" });
    const button = (name, said, act) => el("button", { type: "button", "aria-label": said, title: said, onclick: act }, name);
    const tools = el("div", { class: "tools" }, button("+", "Closer", () => this.zoom(1.6)), button("−", "Farther", () => this.zoom(1 / 1.6)), button("⤢", "Fit what is shown", () => this.fit(true)));
    const said = `${label}. Arrow keys move it, plus and minus zoom, zero fits it.`;
    this.element = el("div", { class: low ? "plot low" : "plot", tabindex: "0", role: "group", "aria-label": said }, this.canvas, tools);
    this.ground = new Ground(settings, () => this.changed(true), signal);
    this.hands(signal);
    const sizes = new ResizeObserver(() => this.changed(true));
    sizes.observe(this.element);
    signal.addEventListener("abort", () => { sizes.disconnect(); cancelAnimationFrame(this.due); clearInterval(this.fading); });
    document.addEventListener("repaint", () => this.changed(true), { signal });
    this.fading = setInterval(() => this.points.length && this.changed(), 500);
  }

  get width() { return this.element.clientWidth; }
  get height() { return this.element.clientHeight; }

  pixel(u, v) { return [(u - this.view.u) * this.view.su + this.width / 2, this.height / 2 - (v - this.view.v) * this.view.sv]; }
  screen(x, y) { return this.pixel(...this.frame.to(x, y)); }
  value(px, py) { return this.frame.from((px - this.width / 2) / this.view.su + this.view.u, (this.height / 2 - py) / this.view.sv + this.view.v); }
  seen() { return [...this.value(0, this.height), ...this.value(this.width, 0)]; }

  // Events with where they are; `told` is how many heard.
  add(points) {
    const now = performance.now();
    for (const { at, told } of points) if (at && at.every(Number.isFinite)) this.points.push({ at, told, now });
    if (this.points.length > KEPT) this.points.splice(0, this.points.length - KEPT);
    this.changed();
  }

  // Shapes: {rings, kind: "chosen" or "other", movable}.
  set(shapes) {
    this.shapes = shapes;
    this.changed();
  }

  // The view holds what is shown; by itself only until somebody moves it.
  fit(asked = false) {
    if (this.held && !asked) return;
    if (asked) this.held = false;
    const boxes = this.shapes.length ? this.shapes.flatMap((shape) => shape.rings) : [];
    const points = boxes.length ? boxes.flat() : this.points.map((point) => point.at);
    if (!points.length || !this.width) return;
    const units = points.map(([x, y]) => this.frame.to(x, y));
    const ends = (axis) => { const all = units.map((unit) => unit[axis]).sort((a, b) => a - b); const cut = boxes.length ? 0 : Math.floor(all.length / 100); return [all[cut], all[all.length - 1 - cut]]; };
    const [[u0, u1], [v0, v1]] = [ends(0), ends(1)];
    const least = this.frame.kind !== "globe" ? 1e-9 : boxes.length ? 0.05 : FEWEST;
    const margin = boxes.length ? 0.4 : 0.86;
    let su = (this.width * margin) / Math.max(u1 - u0, least);
    let sv = (this.height * margin) / Math.max(v1 - v0, least);
    if (this.frame.square) su = sv = Math.min(su, sv);
    this.view = { u: (u0 + u1) / 2, v: (v0 + v1) / 2, su, sv };
    this.changed(true);
  }

  zoom(by, px = this.width / 2, py = this.height / 2) {
    const [u, v] = [(px - this.width / 2) / this.view.su + this.view.u, (this.height / 2 - py) / this.view.sv + this.view.v];
    const kept = this.frame.kind === "globe" ? Math.max(0.5, Math.min(4e5, this.view.su * by)) / this.view.su : by;
    this.view.su *= kept;
    this.view.sv *= kept;
    this.view.u = u - (px - this.width / 2) / this.view.su;
    this.view.v = v - (this.height / 2 - py) / this.view.sv;
    this.held = true;
    this.changed(true);
  }

  pan(px, py) {
    this.view.u -= px / this.view.su;
    this.view.v += py / this.view.sv;
    this.held = true;
    this.changed(true);
  }

  use(mode) {
    this.mode = mode;
    this.draft = null;
    this.element.classList.toggle("drawing", mode !== "look");
    this.changed();
  }

  hands(signal) {
    const at = (event) => { const box = this.element.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const pointers = new Map();
    let act = null;
    const on = (name, call, given = {}) => this.element.addEventListener(name, call, { signal, ...given });
    on("pointerdown", (event) => {
      if (event.button || event.target.closest("button")) return;
      const here = at(event);
      pointers.set(event.pointerId, here);
      this.element.setPointerCapture(event.pointerId);
      if (pointers.size > 1) { act = null; return; }
      const value = this.value(...here);
      const under = this.shapes.find((shape) => shape.movable && shape.rings.some((ring) => inside(value, ring)));
      if (this.mode === "box") act = { kind: "box", from: value };
      else if (this.mode === "polygon") this.corner(value, here);
      else act = under ? { kind: "move", shape: under, from: value, by: [0, 0] } : { kind: "pan", last: here };
    });
    on("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) return;
      const here = at(event);
      if (pointers.size === 2) {
        const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
        const apart = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
        this.zoom(apart(here, other) / apart(before, other), (here[0] + other[0]) / 2, (here[1] + other[1]) / 2);
      } else if (act?.kind === "pan") this.pan(here[0] - before[0], here[1] - before[1]);
      else if (act?.kind === "box") this.draft = boxRing(boundsOf([[act.from, this.value(...here)]]));
      else if (act?.kind === "move") { const value = this.value(...here); act.by = [value[0] - act.from[0], value[1] - act.from[1]]; act.shape.by = act.by; }
      pointers.set(event.pointerId, here);
      this.changed();
    });
    const up = (event) => {
      if (!pointers.delete(event.pointerId)) return;
      const done = act;
      act = null;
      if (done?.kind === "box" && this.draft) { const box = boundsOf([this.draft]); this.draft = null; this.drawn({ bbox: box }); }
      if (done?.kind === "move") { done.shape.by = null; if (Math.hypot(...done.by) > 0) this.moved(done.shape, done.by); }
      this.changed();
    };
    on("pointerup", up);
    on("pointercancel", (event) => { pointers.delete(event.pointerId); act = null; });
    on("dblclick", () => this.mode === "polygon" && this.close());
    on("wheel", (event) => {
      if (!(event.ctrlKey || event.metaKey || this.element === document.activeElement)) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), ...at(event));
    }, { passive: false });
    on("keydown", (event) => this.keyed(event));
  }

  keyed(event) {
    if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (steps[event.key]) this.pan(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.6);
    else if (event.key === "-") this.zoom(1 / 1.6);
    else if (event.key === "0") this.fit(true);
    else if (event.key === "Enter" && this.mode === "polygon") this.close();
    else if (event.key === "Escape") this.use("look");
    else return;
    event.preventDefault();
  }

  corner(value, here) {
    const corners = this.draft ?? [];
    const first = corners.length > 2 ? this.screen(...corners[0]) : null;
    if (first && Math.hypot(first[0] - here[0], first[1] - here[1]) < 12) this.close();
    else this.draft = [...corners, value];
  }

  close() {
    const corners = this.draft ?? [];
    this.draft = null;
    const distinct = corners.filter((corner, at) => at === 0 || corner[0] !== corners[at - 1][0] || corner[1] !== corners[at - 1][1]);
    if (distinct.length > 2) this.drawn({ type: "Polygon", coordinates: [[...distinct, distinct[0]]] });
    this.changed();
  }

  changed(ground = false) {
    this.stale ||= ground;
    this.due ??= requestAnimationFrame(() => { this.due = null; this.draw(); });
  }

  colour = (name) => this.style.getPropertyValue(name);

  draw() {
    const [w, h, ratio] = [this.width, this.height, devicePixelRatio || 1];
    if (!w || !h) return;
    this.style = getComputedStyle(document.documentElement);
    for (const canvas of [this.canvas, this.under]) {
      if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) { canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio); this.stale = true; }
    }
    if (this.stale) {
      this.stale = false;
      const pen = this.under.getContext("2d");
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, w, h);
      this.ground.draw(pen, this, this.colour);
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.under, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawPoints(pen);
    for (const shape of this.shapes) this.drawShape(pen, shape.rings, shape.kind, shape.by);
    if (this.draft) this.drawShape(pen, [this.draft], "draft");
  }

  drawPoints(pen) {
    const now = performance.now();
    this.points = this.points.filter((point) => now - point.now < FADE);
    for (const lit of [false, true]) {
      pen.fillStyle = this.colour(lit ? "--lit" : "--dot");
      for (const { at, told, now: came } of this.points) {
        if (told > 0 !== lit) continue;
        const [x, y] = this.screen(...at);
        if (x < -8 || y < -8 || x > this.width + 8 || y > this.height + 8) continue;
        const age = (now - came) / FADE;
        pen.globalAlpha = (lit ? 0.9 : 0.55) * (1 - age);
        pen.beginPath();
        pen.arc(x, y, lit ? 3.4 + 3 * Math.max(0, 1 - age * 30) : 1.8, 0, 7);
        pen.fill();
      }
    }
    pen.globalAlpha = 1;
  }

  drawShape(pen, rings, kind, by) {
    const chosen = kind !== "other";
    pen.strokeStyle = this.colour(chosen ? "--accent" : "--soft");
    pen.fillStyle = this.colour(chosen ? "--lit" : "--soft");
    pen.lineWidth = chosen ? 2 : 1;
    pen.setLineDash(kind === "draft" ? [5, 4] : []);
    pen.beginPath();
    for (const ring of rings) {
      const places = ring.map(([x, y]) => (by ? this.screen(x + by[0], y + by[1]) : this.screen(x, y)));
      if (places.length === 1) pen.arc(...places[0], 5, 0, 7);
      places.forEach(([x, y], at) => (at ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    }
    pen.globalAlpha = chosen ? 0.14 : 0.08;
    pen.fill("evenodd");
    pen.globalAlpha = 1;
    pen.stroke();
    pen.setLineDash([]);
  }
}
