// The plane (l, r): watchers as dots, the last messages as rectangles that fade.

import { el } from "./dom.js";

const KEPT = 10;
const FADE = 6000;

export class Plane {
  constructor(schema, signal) {
    this.schema = schema;
    this.canvas = el("canvas", { role: "img", "aria-label": "The plane of intervals: least value across, greatest upwards; messages as rectangles" });
    this.element = el("div", { class: "plot" }, this.canvas);
    this.element.style.margin = ".7rem 0";
    this.changes = [];
    this.watchers = [];
    const sizes = new ResizeObserver(() => this.draw());
    sizes.observe(this.element);
    const fading = setInterval(() => this.changes.length && this.draw(), 200);
    signal.addEventListener("abort", () => { sizes.disconnect(); clearInterval(fading); });
    document.addEventListener("repaint", () => this.draw(), { signal });
  }

  use(attribute) {
    const { lo, hi } = this.schema[attribute];
    this.fixed = Number.isFinite(lo) && Number.isFinite(hi) ? [lo, hi] : null;
    this.name = attribute;
    [this.changes, this.watchers] = [[], []];
    this.draw();
  }

  add(changes) {
    const now = performance.now();
    this.changes = [...changes.map((change) => ({ ...change, now })), ...this.changes].slice(0, KEPT);
    this.draw();
  }

  watch(ranges) {
    this.watchers = ranges;
    this.draw();
  }

  ends() {
    if (this.fixed) return this.fixed;
    const seen = [...this.watchers.flat(), ...this.changes.map((change) => change.x)].filter((value) => Number.isFinite(value));
    return seen.length ? [Math.min(...seen), Math.max(...seen)] : [0, 1];
  }

  draw() {
    const [w, h, ratio] = [this.element.clientWidth, this.element.clientHeight, devicePixelRatio || 1];
    if (!w || !h) return;
    this.canvas.width = Math.round(w * ratio);
    this.canvas.height = Math.round(h * ratio);
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name);
    const [low, high] = this.ends();
    const span = high - low || 1;
    const [left, bottom, wide, tall] = [44, h - 30, w - 60, h - 48];
    const x = (value) => left + (Math.max(0, Math.min(1, ((value ?? low) - low) / span))) * wide;
    const y = (value) => bottom - (Math.max(0, Math.min(1, ((value ?? high) - low) / span))) * tall;
    this.axes(pen, colour, { low, high, x, y });
    const now = performance.now();
    this.changes = this.changes.filter((change) => now - change.now < FADE);
    for (const change of [...this.changes].reverse()) {
      const strong = 1 - (now - change.now) / FADE;
      pen.fillStyle = pen.strokeStyle = colour("--lit");
      for (const [l0, r0, l1, r1] of change.rectangles) {
        const [px, py] = [x(l0 ?? low), y(r1 ?? high)];
        const [pw, ph] = [Math.max(1, x(l1 ?? high) - px), Math.max(1, y(r0 ?? low) - py)];
        pen.globalAlpha = 0.22 * strong;
        pen.fillRect(px, py, pw, ph);
        pen.globalAlpha = 0.8 * strong;
        pen.strokeRect(px, py, pw, ph);
      }
    }
    pen.globalAlpha = 1;
    pen.fillStyle = colour("--ink");
    for (const [l, r] of this.watchers) {
      pen.beginPath();
      pen.arc(x(l), y(r), 2.6, 0, 7);
      pen.fill();
    }
  }

  axes(pen, colour, { low, high, x, y }) {
    pen.strokeStyle = colour("--border");
    pen.fillStyle = colour("--soft");
    pen.font = "11px system-ui, sans-serif";
    pen.lineWidth = 1;
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      const value = low + (high - low) * part;
      const said = String(Number(value.toPrecision(4)));
      for (const [from, to] of [[[x(value), y(low)], [x(value), y(high)]], [[x(low), y(value)], [x(high), y(value)]]]) {
        pen.beginPath();
        pen.moveTo(...from);
        pen.lineTo(...to);
        pen.stroke();
      }
      pen.textAlign = "center";
      pen.fillText(said, x(value), y(low) + 14);
      pen.textAlign = "right";
      pen.fillText(said, x(low) - 6, y(value) + 4);
    }
    pen.beginPath();
    pen.strokeStyle = colour("--soft");
    pen.moveTo(x(low), y(low));
    pen.lineTo(x(high), y(high));
    pen.stroke();
    pen.textAlign = "right";
    pen.fillText(`l: least ${this.name}`, x(high), y(low) + 27);
    pen.textAlign = "left";
    pen.fillText(`r: greatest ${this.name}`, x(low) + 4, y(high) - 6);
  }
}
