// Frames of a plot: how values become units of the drawing, and back. A globe is drawn as Mercator has it, as tiles are.

const DEGREE = Math.PI / 180;
const STEEPEST = 85.05;

const mercator = (latitude) => Math.log(Math.tan(Math.PI / 4 + (Math.max(-STEEPEST, Math.min(STEEPEST, latitude)) * DEGREE) / 2)) / DEGREE;
const latitude = (v) => (2 * Math.atan(Math.exp(v * DEGREE)) - Math.PI / 2) / DEGREE;

const GLOBE = { kind: "globe", to: (x, y) => [x, mercator(y)], from: (u, v) => [u, latitude(v)], square: true };
const PLANE = { kind: "plane", to: (x, y) => [x, y], from: (u, v) => [u, v], square: true };

// The frame of a topic: its first place, or a scatter over two numbers of choice.
export function frameOf(topic, axes) {
  const place = placeOf(topic);
  if (place && !axes) {
    const frame = topic.schema[place].plane ? PLANE : GLOBE;
    return { ...frame, point: (event) => middle(event[place]), names: frame.kind === "globe" ? ["longitude", "latitude"] : ["x", "y"] };
  }
  const [x, y] = axes ?? numbersOf(topic);
  const read = (event, name) => (isTime(topic, name) ? Date.parse(event[name]) : Number(event[name]));
  const point = (event) => (x === undefined || event[x] === undefined || event[y] === undefined ? null : [read(event, x), read(event, y)]);
  return { kind: "scatter", to: (a, b) => [a, b], from: (u, v) => [u, v], square: false, point, names: [x, y] };
}

const isTime = (topic, name) => ["time", "date"].includes(topic.schema[name]?.type);
export const placeOf = (topic) => Object.keys(topic.schema).find((name) => topic.schema[name].type === "place") ?? null;

export function numbersOf(topic) {
  const found = Object.keys(topic.schema).filter((name) => topic.schema[name].type === "number" || isTime(topic, name));
  return found.length === 1 ? [found[0], found[0]] : found;
}

// The middle of a place: a point, a box, or any GeoJSON.
export function middle(place) {
  if (Array.isArray(place)) return place.length === 2 ? place : [(place[0] + place[2]) / 2, (place[1] + place[3]) / 2];
  const box = boundsOf(ringsOf(place ?? {}));
  return box && [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
}

// A shape of a filter as rings of points.
export function ringsOf(shape) {
  if (shape.bbox) return [boxRing(shape.bbox)];
  if (shape.geometries) return shape.geometries.flatMap(ringsOf);
  const deep = (part) => (typeof part[0]?.[0] === "number" ? [part] : part.flatMap(deep));
  if (shape.type === "Point") return [[shape.coordinates]];
  return shape.coordinates ? deep(shape.coordinates) : [];
}

export const boxRing = ([west, south, east, north]) => [[west, south], [east, south], [east, north], [west, north], [west, south]];

export function boundsOf(rings) {
  const points = rings.flat();
  if (!points.length) return null;
  const [xs, ys] = [points.map((point) => point[0]), points.map((point) => point[1])];
  return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
}

export function inside([x, y], ring) {
  let odd = false;
  for (let i = 0, j = ring.length - 1; i < ring.length; j = i++) {
    const [[xi, yi], [xj, yj]] = [ring[i], ring[j]];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) odd = !odd;
  }
  return odd;
}
