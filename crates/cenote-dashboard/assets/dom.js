// Small helpers for the document. Text goes in as text: names, labels and sites are data.

const SVG = "http://www.w3.org/2000/svg";

/** Makes an element. Children are nodes or texts. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Makes an element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

const texts = new WeakMap();

/** Sets the text of an element, if it is another one than before. */
export function setText(node, text) {
  const next = String(text);
  if (texts.get(node) === next) return;
  texts.set(node, next);
  node.textContent = next;
}

/** Does the same for a sentence, whose parts in backquotes are code. */
export function setProse(node, text) {
  if (texts.get(node) === text) return;
  texts.set(node, text);
  const parts = text.split("`");
  node.replaceChildren(...parts.map((part, index) => (index % 2 ? el("code", {}, part) : part)));
}

const values = new WeakMap();

/** Sets an attribute, if its value is another one than before. `null` and `false` remove it. */
export function setAttribute(node, name, value) {
  let known = values.get(node);
  if (!known) values.set(node, (known = new Map()));
  const next = value === true ? "" : value === false || value === undefined ? null : value;
  if (known.has(name) && known.get(name) === next) return;
  known.set(name, next);
  if (next === null) node.removeAttribute(name);
  else node.setAttribute(name, next);
}

export function show(node, shown) {
  if (node.hidden === shown) node.hidden = !shown;
}

/**
 * Makes the children of an element fit a list: one child for each item, in its order. Children are
 * kept by key, so that focus and selection stay where they are.
 */
export function sync(parent, items, keyOf, make, update) {
  const rows = parent.rowsByKey ?? (parent.rowsByKey = new Map());
  const unused = new Set(rows.keys());
  let place = parent.firstChild;
  items.forEach((item, index) => {
    const key = keyOf(item, index);
    let row = rows.get(key);
    if (!row) rows.set(key, (row = make(item)));
    unused.delete(key);
    if (row.node === place) place = place.nextSibling;
    else parent.insertBefore(row.node, place);
    update(row, item);
  });
  for (const key of unused) {
    rows.get(key).node.remove();
    rows.delete(key);
  }
}

const SHAPES = {
  healthy: "M5 0a5 5 0 1 0 0 10A5 5 0 0 0 5 0z",
  busy: "M5 0a5 5 0 1 0 0 10A5 5 0 0 0 5 0zm0 1.5v7a3.5 3.5 0 0 1 0-7z",
  stuck: "M5 0l5 9.5H0z",
  down: "M0 0h10v10H0z",
  unproven: "M5 0a5 5 0 1 0 0 10A5 5 0 0 0 5 0zm0 1.8a3.2 3.2 0 1 1 0 6.4 3.2 3.2 0 0 1 0-6.4z",
  closed: "M1.4 0L5 3.6 8.6 0 10 1.4 6.4 5 10 8.6 8.6 10 5 6.4 1.4 10 0 8.6 3.6 5 0 1.4z",
};

/** A verdict as a word with a shape and a colour. */
export function verdict() {
  const shape = svg("path");
  const word = el("span");
  const drawing = svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, shape);
  const node = el("span", { class: "verdict" }, drawing, word);
  return {
    node,
    set(health) {
      setAttribute(node, "data-verdict", health.verdict);
      setAttribute(shape, "d", SHAPES[health.verdict] ?? SHAPES.unproven);
      setText(word, health.verdict);
    },
  };
}

/** A card with a heading. */
export function card(title, classes, ...children) {
  const hint = el("span", { class: "hint" });
  const id = `h-${title.toLowerCase().replaceAll(" ", "-")}`;
  const head = el("header", {}, el("h2", { id }, title), hint);
  const attributes = { class: `card ${classes}`, "aria-labelledby": id };
  const node = el("section", attributes, head, ...children);
  return { node, hint };
}

/** A table with its heading row. A column is a name, or a name and classes. */
export function table(caption, columns, classes = "") {
  const heads = columns.map(([name, kind]) => el("th", { scope: "col", class: kind ?? "" }, name));
  const body = el("tbody");
  const title = el("caption", { class: "unseen" }, caption);
  const head = el("thead", {}, el("tr", {}, heads));
  const node = el("table", { class: classes }, title, head, body);
  return { node, body };
}

/** Tells a screen reader something that happened. */
export function announce(text) {
  document.getElementById("announce").textContent = text;
}
