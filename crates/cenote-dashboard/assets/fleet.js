// The fleet of a pool: its members, and how its budget was divided in the last minutes.

import { announce, card, el, setAttribute, setText, show } from "./dom.js";
import { count } from "./format.js";
import { Chart, Past } from "./chart.js";
import { list, row } from "./tables.js";

const LINES = [
  { kind: "in_use", name: "granted to all", value: (sample) => sample.granted },
  { kind: "max_size", name: "capacity", value: (sample) => sample.capacity },
  { kind: "p99", name: "share here", value: (sample) => sample.share },
  { kind: "waiting", name: "wanted here", value: (sample) => sample.wants },
];

const COLUMNS = [
  ["Member"],
  ["Has", "num"],
  ["Wants", "num"],
  ["Floor", "num"],
  ["Weight", "num"],
  ["State"],
];

export class Fleet {
  constructor() {
    this.past = new Past();
    this.data = null;
    this.chart = new Chart({ title: "Fleet", lines: LINES, area: 0, text: count });
    this.trouble = el("p", { class: "more", hidden: true });
    this.card = card("Fleet", "half fleet", this.chart.node, this.trouble);
    this.members = list("Fleet members", "half fleet", COLUMNS, "The fleet has no members yet.");
    this.nodes = [this.card.node, this.members.node];
  }

  /** Takes what a frame says of the fleet, which is nothing if the pool is in none. */
  take(fleet) {
    if (fleet?.history) this.past.replace(fleet.history);
    if (fleet?.sample) this.past.add(fleet.sample);
    if (fleet?.error && this.data && !this.data.error) announce("The engine of the fleet is away");
    this.data = fleet ?? null;
  }

  draw(now) {
    const fleet = this.data;
    for (const node of this.nodes) show(node, fleet !== null);
    if (!fleet) return;
    const out = `${count(fleet.granted)} of ${count(fleet.capacity)} out`;
    setText(this.card.hint, `${out}, share here ${count(fleet.share)}`);
    const trouble = [
      fleet.error,
      fleet.learned ? null : "the cell was lost: no member grows until it is learned",
      fleet.disputed ? "members were told different capacities: the lowest counts" : null,
    ];
    const told = trouble.filter((text) => text !== null).join("; ");
    setText(this.trouble, told);
    show(this.trouble, told !== "");
    this.chart.draw(this.past, now);
    const { members, members_hidden: hidden } = fleet;
    setText(this.members.hint, count(members.length + hidden));
    this.members.fill(members, hidden, ({ id }) => id, member, fill);
  }
}

function member() {
  const cells = row("", "num", "num", "num", "num", "");
  return { node: el("tr", {}, cells), cells };
}

function fill({ cells }, { id, name, here, has, wants, floor, weight, fenced }) {
  setText(cells[0], name);
  setAttribute(cells[0], "title", id);
  [has, wants, floor, weight].forEach((number, index) => setText(cells[index + 1], count(number)));
  setText(cells[5], fenced ? "silent, fenced" : here ? "this process" : "renews");
}
