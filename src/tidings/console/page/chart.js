// Lines over the last two minutes: one or two series, a point a second.

import { el, number } from "./dom.js";

const KEPT = 120;

export class Chart {
  // Series: [name, colour's variable]. `unit` stands behind figures.
  constructor(label, series, unit, signal) {
    this.series = series.map(([name, colour]) => ({ name, colour, values: [] }));
    this.unit = unit;
    this.canvas = el("canvas", { role: "img", "aria-label": `${label}, the last two minutes` });
    this.box = el("div", { class: "chart" }, this.canvas);
    this.figures = this.series.map(() => el("b", {}, "–"));
    const keys = this.series.map((one, at) => el("span", {}, el("i", { class: one.colour === "--lit" ? "lit" : null }), `${one.name} `, this.figures[at]));
    this.element = el("div", {}, el("div", { class: "keys" }, keys), this.box);
    const sizes = new ResizeObserver(() => this.draw());
    sizes.observe(this.box);
    signal.addEventListener("abort", () => sizes.disconnect());
    document.addEventListener("repaint", () => this.draw(), { signal });
  }

  add(...values) {
    this.series.forEach((one, at) => {
      one.values.push(values[at]);
      if (one.values.length > KEPT) one.values.shift();
      this.figures[at].textContent = values[at] === null ? "–" : `${number(Math.round(values[at] * 10) / 10)}${this.unit}`;
    });
    this.draw();
  }

  draw() {
    const { clientWidth: w, clientHeight: h } = this.box;
    const ratio = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(w * ratio) || this.canvas.height !== Math.round(h * ratio)) {
      this.canvas.width = Math.round(w * ratio);
      this.canvas.height = Math.round(h * ratio);
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, w, h);
    const style = getComputedStyle(document.documentElement);
    const most = nice(Math.max(1, ...this.series.flatMap((one) => one.values.filter((value) => value !== null))));
    const y = (value) => h - 16 - (value / most) * (h - 32);
    pen.font = "11px system-ui, sans-serif";
    pen.lineWidth = 1;
    for (const part of [0, 0.5, 1]) {
      pen.strokeStyle = style.getPropertyValue("--line");
      pen.beginPath();
      pen.moveTo(0, Math.round(y(most * part)) + 0.5);
      pen.lineTo(w, Math.round(y(most * part)) + 0.5);
      pen.stroke();
      pen.fillStyle = style.getPropertyValue("--soft");
      if (part) pen.fillText(number(most * part) + this.unit, 0, y(most * part) - 3);
    }
    pen.lineWidth = 1.6;
    pen.lineJoin = "round";
    for (const one of this.series) {
      pen.strokeStyle = style.getPropertyValue(one.colour);
      pen.beginPath();
      let down = false;
      one.values.forEach((value, at) => {
        const x = w - (one.values.length - 1 - at) * (w / (KEPT - 1));
        if (value === null) down = false;
        else if (down) pen.lineTo(x, y(value));
        else {
          pen.moveTo(x, y(value));
          down = true;
        }
      });
      pen.stroke();
      if (one.values.length === 1 && one.values[0] !== null) {
        pen.fillStyle = style.getPropertyValue(one.colour);
        pen.fillRect(w - 3, y(one.values[0]) - 1.5, 3, 3);
      }
    }
  }
}

function nice(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].find((step) => step * power >= most) * power;
}
