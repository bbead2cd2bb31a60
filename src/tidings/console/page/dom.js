// Elements from words. Whatever a user wrote becomes a text node: there is no other way from a string to the page.

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined).map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

export function card(title, note, ...children) {
  const heading = el("h2", {}, title);
  return el("section", { class: "card" }, el("header", {}, heading, typeof note === "string" ? el("p", { class: "note" }, note) : note), ...children);
}

export function field(label, input) {
  return el("label", { class: "field" }, label, input);
}

// Columns: [heading, class, cell of a row]. The first column names the row.
export class Rows {
  constructor(caption, columns, empty) {
    this.columns = columns;
    this.body = el("tbody");
    const heads = columns.map(([name, kind]) => el("th", { scope: "col", class: kind }, name));
    this.table = el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, heads)), this.body);
    this.none = el("p", { class: "empty" }, empty);
    this.element = el("div", { class: "rows", tabindex: "0", role: "region", "aria-label": caption }, this.table, this.none);
    this.show([]);
  }

  // Rows that somebody points at or has the focus in stay as they are, unless forced.
  show(rows, { fresh = () => false, chosen = () => false, force = true } = {}) {
    if (!force && (this.body.matches(":hover") || this.body.contains(document.activeElement))) return false;
    this.body.replaceChildren(...rows.map((row) => this.row(row, fresh(row), chosen(row))));
    this.table.hidden = rows.length === 0;
    this.none.hidden = rows.length > 0;
    return true;
  }

  row(row, fresh, chosen) {
    const cells = this.columns.map(([, kind, cell], at) => (at === 0 ? el("th", { scope: "row", class: kind }, cell(row)) : el("td", { class: kind }, cell(row))));
    return el("tr", { class: [fresh ? "fresh" : "", chosen ? "chosen" : ""].join(" ").trim() || null }, cells);
  }
}

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const rough = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const count = (n) => whole.format(n);
export const about = (n) => (n < 10 ? String(Number(n.toPrecision(1))) : whole.format(Math.round(n)));
export const many = (n, one) => `${count(n)} ${one}${n === 1 ? "" : "s"}`;
export const number = (n) => (n === null || n === undefined ? "" : Number.isInteger(n) ? whole.format(n) : short.format(n));
export const clock = (text) => { const at = new Date(text); return Number.isNaN(at.getTime()) ? String(text) : at.toLocaleTimeString("en-GB"); };

export function bytes(n) {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (n < 1000 || unit === "GB") return `${rough.format(n)} ${unit}`;
    n /= 1000;
  }
}

export function later(call, wait) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), wait);
  };
}
