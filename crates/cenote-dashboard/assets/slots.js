// The slots of a pool: a cell for each, with a colour and a pattern for its state.

import { card, el, setAttribute, setText, sync } from "./dom.js";
import { count, duration, plural } from "./format.js";

const STATES = [
  "leased",
  "idle",
  "opening",
  "checking",
  "cleaning",
  "closing",
  "reserved",
  "vacant",
];

/** From here on cells are small. */
const MANY = 120;

export class Slots {
  constructor() {
    this.cells = el("div", { class: "slots", role: "img" });
    this.counts = new Map();
    const legend = STATES.map((state) => {
      const number = el("b");
      const look = { class: "cell", "data-state": state, "aria-hidden": "true" };
      const item = el("li", {}, el("span", look), `${state} `, number);
      this.counts.set(state, { item, number });
      return item;
    });
    const { node, hint } = card("Slots", "", this.cells, el("ul", { class: "legend" }, legend));
    this.node = node;
    this.hint = hint;
  }

  draw({ slots, slots_hidden: hidden, pool }) {
    const cell = () => ({ node: el("span", { class: "cell" }) });
    sync(this.cells, slots, (slot) => slot.number, cell, fill);
    setAttribute(this.cells, "class", slots.length > MANY ? "slots many" : "slots");
    const numbers = STATES.map((state) => {
      return [state, slots.filter((slot) => slot.state === state).length];
    });
    for (const [state, number] of numbers) {
      const { item, number: shown } = this.counts.get(state);
      setText(shown, count(number));
      setAttribute(item, "class", number ? null : "none");
    }
    const some = numbers.filter(([, number]) => number);
    const words = some.map(([state, number]) => `${number} ${state}`).join(", ");
    setAttribute(this.cells, "aria-label", `${plural(slots.length, "slot")}: ${words}`);
    const more = hidden ? `, ${count(hidden)} more are not drawn` : "";
    const [full, all] = [count(pool.total + pool.closing), count(pool.max_size)];
    setText(this.hint, `${full} of ${all} slots hold a resource${more}`);
  }
}

function fill({ node }, slot) {
  setAttribute(node, "data-state", slot.state);
  setAttribute(node, "data-leaked", slot.leaked);
  const resource = slot.resource === null ? "" : `, resource ${slot.resource}`;
  // Rounded to seconds, so that a title does not change with every frame.
  const seconds = Math.floor((slot.since_ms ?? 0) / 1000);
  const since = seconds ? ` for ${duration(seconds * 1000)}` : "";
  setAttribute(node, "title", `slot ${slot.number}: ${slot.state}${resource}${since}`);
}
