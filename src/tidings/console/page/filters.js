// Places in a filter's text: written, put in, put in place of another. The service reads the text; this only writes it.

const digits = (value) => String(Number(value.toFixed(5)));

// A shape as CQL2 text.
export function written(shape) {
  if (shape.bbox) return `BBOX(${shape.bbox.map(digits).join(", ")})`;
  return `POLYGON((${shape.coordinates[0].map((corner) => corner.map(digits).join(" ")).join(", ")}))`;
}

// Where the literals of places stand in a text: [from, to] of each BBOX(...) and POLYGON(...), outside of strings.
export function literals(text) {
  const found = [];
  const names = /'(?:[^']|'')*'|\b(?:BBOX|POLYGON)\s*\(/gi;
  for (let name = names.exec(text); name; name = names.exec(text)) {
    if (name[0].startsWith("'")) continue;
    let [open, at] = [1, names.lastIndex];
    while (at < text.length && open) {
      if (text[at] === "(") open += 1;
      if (text[at] === ")") open -= 1;
      at += 1;
    }
    found.push([name.index, at]);
    names.lastIndex = at;
  }
  return found;
}

// The text with the shape: in place of the only literal, or joined to what else is asked.
export function withShape(text, place, shape) {
  const there = literals(text);
  if (there.length === 1) return text.slice(0, there[0][0]) + written(shape) + text.slice(there[0][1]);
  const asked = `S_INTERSECTS(${place}, ${written(shape)})`;
  const before = text.trim();
  if (!before || /^true$/i.test(before)) return asked;
  return /\bOR\b/i.test(before) ? `(${before}) AND ${asked}` : `${before} AND ${asked}`;
}
