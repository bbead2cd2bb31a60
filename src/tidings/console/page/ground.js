// What lies under the points: tiles if a server of them is set, coasts and borders, and a grid where there is neither.

import { get, query } from "./api.js";
import { later } from "./dom.js";

const TILES = 160;

export class Ground {
  constructor(settings, changed, signal) {
    this.tiles = settings.tiles;
    this.changed = changed;
    this.signal = signal;
    this.land = { coasts: [], borders: [] };
    this.asked = "";
    this.images = new Map();
    this.ask = later((bounds) => this.fetch(bounds), 120);
  }

  // The lines for what is seen, half as much again on every side, on steps so that a small move asks for nothing new.
  want([west, south, east, north]) {
    const step = 2 ** Math.floor(Math.log2(Math.max(east - west, 0.01)));
    const low = (value, least) => Math.max(least, Math.floor(value / step) * step - step / 2);
    const high = (value, most) => Math.min(most, Math.ceil(value / step) * step + step / 2);
    const bounds = { west: low(west, -180), south: low(south, -90), east: high(east, 180), north: high(north, 90) };
    const name = JSON.stringify(bounds);
    if (name === this.asked || bounds.west >= bounds.east) return;
    this.asked = name;
    this.ask(bounds);
  }

  async fetch(bounds) {
    try {
      this.land = await get(query("/console/land", bounds), this.signal);
      this.changed();
    } catch {
      this.asked = "";
    }
  }

  draw(pen, plot, colour) {
    if (plot.frame.kind !== "globe") return this.grid(pen, plot, colour);
    this.want(plot.seen());
    if (this.tiles) this.drawTiles(pen, plot);
    for (const [lines, name, width] of [[this.land.borders, "--border", 1], [this.land.coasts, "--land", 1]]) {
      pen.strokeStyle = colour(name);
      pen.lineWidth = width;
      pen.beginPath();
      for (const line of lines) {
        for (let at = 0; at < line.length; at += 2) {
          const [x, y] = plot.screen(line[at], line[at + 1]);
          if (at) pen.lineTo(x, y);
          else pen.moveTo(x, y);
        }
      }
      pen.stroke();
    }
  }

  grid(pen, plot, colour) {
    const [west, south, east, north] = plot.seen();
    pen.strokeStyle = colour("--border");
    pen.fillStyle = colour("--soft");
    pen.font = "11px system-ui, sans-serif";
    pen.lineWidth = 1;
    for (const [low, high, across] of [[west, east, true], [south, north, false]]) {
      const step = stepOf((high - low) / 6);
      for (let at = Math.ceil(low / step) * step; at <= high; at += step) {
        const [x, y] = plot.screen(across ? at : west, across ? south : at);
        pen.beginPath();
        pen.moveTo(across ? x : 0, across ? 0 : y);
        pen.lineTo(across ? x : plot.width, across ? plot.height : y);
        pen.stroke();
        const said = Math.abs(at) > 1e11 ? new Date(at).toISOString().slice(5, 16).replace("T", " ") : String(Number(at.toPrecision(6)));
        if (across) pen.fillText(said, x + 4, plot.height - 6);
        else pen.fillText(said, 6, y - 4);
      }
    }
    const [x, y] = plot.frame.names;
    pen.textAlign = "right";
    pen.fillText(`${x} →`, plot.width - 8, plot.height - 20);
    pen.textAlign = "left";
    pen.fillText(`↑ ${y}`, 6, 14);
  }

  drawTiles(pen, plot) {
    const z = Math.max(0, Math.min(19, Math.round(Math.log2((plot.view.su * 360) / 256))));
    const size = 360 / 2 ** z;
    const [[u0, v1], [u1, v0]] = [plot.frame.to(...plot.seen().slice(0, 2)), plot.frame.to(...plot.seen().slice(2))];
    for (let x = Math.floor((u0 + 180) / size); x <= (u1 + 180) / size; x++) {
      for (let y = Math.floor((180 - v0) / size); y <= (180 - v1) / size; y++) {
        if (x < 0 || y < 0 || x >= 2 ** z || y >= 2 ** z) continue;
        const image = this.image(z, x, y);
        if (!image.complete || !image.naturalWidth) continue;
        const [left, top] = plot.pixel(x * size - 180, 180 - y * size);
        pen.drawImage(image, left, top, size * plot.view.su + 0.5, size * plot.view.sv + 0.5);
      }
    }
  }

  image(z, x, y) {
    const address = this.tiles.replace("{z}", z).replace("{x}", x).replace("{y}", y);
    let image = this.images.get(address);
    if (!image) {
      if (this.images.size >= TILES) this.images.delete(this.images.keys().next().value);
      image = new Image();
      image.referrerPolicy = "no-referrer";
      image.onload = this.changed;
      image.src = address;
      this.images.set(address, image);
    }
    return image;
  }
}

function stepOf(about) {
  const power = 10 ** Math.floor(Math.log10(Math.max(about, 1e-12)));
  return ([1, 2, 5].find((step) => step * power >= about) ?? 10) * power;
}
