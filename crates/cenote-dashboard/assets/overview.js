// The list of all pools.

import { announce, el, setAttribute, setText, svg, sync, table, verdict } from "./dom.js";
import { count, duration, rate } from "./format.js";
import { Past, spark } from "./chart.js";

/** The worst comes first when sorted by verdict. */
const RANK = { down: 0, stuck: 1, closed: 2, busy: 3, unproven: 4, healthy: 5 };

const rank = (pool) => RANK[pool.health.verdict] ?? 6;
const oldest = (pool) => -(pool.oldest_wait_ms ?? -1);

const COLUMNS = [
  { key: "verdict", title: "Verdict", kind: "col-verdict", by: rank },
  { key: "name", title: "Pool", kind: "", by: (pool) => pool.name.toLowerCase() },
  { key: "meter", title: "Use", kind: "col-meter", by: (pool) => -pool.in_use / pool.max_size },
  { key: "in_use", title: "In use", kind: "num", by: (pool) => -pool.in_use },
  { key: "max_size", title: "Size", kind: "num", by: (pool) => -pool.max_size },
  { key: "idle", title: "Idle", kind: "num col-idle", by: (pool) => -pool.idle },
  { key: "opening", title: "Opening", kind: "num col-opening", by: (pool) => -pool.opening },
  { key: "waiting", title: "Waiting", kind: "num", by: (pool) => -pool.waiting },
  { key: "oldest", title: "Longest wait", kind: "num col-oldest", by: oldest },
  { key: "rate", title: "Leases/s", kind: "num col-rate", by: (pool) => -pool.past.rate() },
];

export class Overview {
  constructor() {
    document.title = "Pools";
    this.pools = [];
    this.pasts = new Map();
    this.verdicts = new Map();
    this.sort = null;
    this.filter = "";
    this.build();
  }

  build() {
    this.summary = el("p", { class: "summary" });
    const name = { placeholder: "Filter by name", "aria-label": "Filter pools by name" };
    const filter = el("input", { class: "filter", type: "search", ...name });
    filter.addEventListener("input", () => {
      this.filter = filter.value.trim().toLowerCase();
      this.draw();
    });
    const { node, body } = table("All pools of this process", [], "pools");
    this.heads = COLUMNS.map((column) => this.head(column));
    this.heads.push(el("th", { scope: "col" }, "Last 5 min"));
    node.tHead.rows[0].append(...this.heads);
    this.body = body;
    this.empty = el("p", { class: "empty", hidden: true });
    this.node = el(
      "div",
      {},
      el("div", { class: "top" }, el("h1", { tabindex: "-1" }, "Pools"), this.summary, filter),
      el("div", { class: "card" }, node, this.empty),
    );
  }

  head(column) {
    const button = el("button", { type: "button" }, column.title);
    const node = el("th", { scope: "col", class: column.kind }, button);
    button.addEventListener("click", () => {
      // The order of the column, its reverse, and then the order of the server.
      const same = this.sort?.column === column;
      if (!same) this.sort = { column, turn: 1 };
      else this.sort = this.sort.turn === 1 ? { column, turn: -1 } : null;
      for (const head of this.heads) head.removeAttribute("aria-sort");
      if (this.sort) node.setAttribute("aria-sort", this.direction());
      this.draw();
    });
    return node;
  }

  /** Numbers are sorted with the largest first. */
  direction() {
    const { key, kind } = this.sort.column;
    const rising = kind.includes("num") || key === "meter" ? -1 : 1;
    return this.sort.turn === rising ? "ascending" : "descending";
  }

  snapshot(data) {
    this.pasts.clear();
    this.take(data);
  }

  update(data) {
    this.take(data);
  }

  take(data) {
    const pasts = new Map();
    for (const pool of data.pools) {
      const past = this.pasts.get(pool.number) ?? new Past();
      if (pool.history) past.replace(pool.history);
      if (pool.sample) past.add(pool.sample);
      pasts.set(pool.number, past);
      pool.past = past;
    }
    this.pasts = pasts;
    this.pools = data.pools;
    this.tellTrouble();
  }

  /** Only a change to the worse is worth an interruption. */
  tellTrouble() {
    for (const { number, name, health } of this.pools) {
      const before = this.verdicts.get(number);
      const changed = before && before !== health.verdict;
      if (changed && !health.ready) announce(`${name} is ${health.text}`);
      this.verdicts.set(number, health.verdict);
    }
  }

  draw() {
    const shown = this.pools.filter((pool) => pool.name.toLowerCase().includes(this.filter));
    if (this.sort) {
      const { column, turn } = this.sort;
      const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
      shown.sort((a, b) => turn * order(column.by(a), column.by(b)) || a.number - b.number);
    }
    sync(this.body, shown, (pool) => pool.number, row, fill);
    this.empty.hidden = shown.length > 0;
    const [none, other] = ["This process has no pool yet.", "No pool has such a name."];
    setText(this.empty, this.pools.length ? other : none);
    this.sumUp();
  }

  sumUp() {
    const sum = (of) => this.pools.reduce((total, pool) => total + of(pool), 0);
    const trouble = this.pools.filter((pool) => !pool.health.ready).length;
    const waiting = sum((pool) => pool.waiting);
    const parts = [
      [count(this.pools.length), this.pools.length === 1 ? "pool" : "pools"],
      [count(sum((pool) => pool.in_use)), `of ${count(sum((pool) => pool.max_size))} in use`],
      [count(waiting), "waiting"],
    ];
    if (trouble) parts.push([count(trouble), "not ready", "trouble"]);
    const make = () => {
      const number = el("b");
      const words = el("span");
      return { node: el("span", {}, number, " ", words), number, words };
    };
    sync(this.summary, parts, (_, index) => index, make, (part, [number, words, kind]) => {
      setText(part.number, number);
      setText(part.words, words);
      setAttribute(part.node, "class", kind ?? null);
    });
  }
}

function row(pool) {
  const cells = {};
  const node = el("tr");
  for (const { key, kind } of COLUMNS) {
    const head = { scope: "row", class: "name" };
    cells[key] = key === "name" ? el("th", head) : el("td", { class: kind });
    node.append(cells[key]);
  }
  const link = el("a", { href: `#/pool/${pool.number}` });
  const [wide, narrow] = [verdict(), verdict()];
  const bar = meter();
  const line = spark();
  const flag = el("span", { class: "flag plain", hidden: true });
  cells.verdict.append(wide.node);
  cells.name.append(link, " ", narrow.node, " ", flag);
  cells.meter.append(bar.node);
  node.append(el("td", {}, line.node));
  return { node, cells, link, wide, narrow, bar, line, flag };
}

function fill(row, pool) {
  const { cells } = row;
  row.wide.set(pool.health);
  row.narrow.set(pool.health);
  setText(row.link, pool.name);
  const breaker = pool.breaker === "active" ? "" : `breaker ${pool.breaker}`;
  const flag = pool.suspended ? "suspended" : breaker;
  setText(row.flag, flag);
  row.flag.hidden = flag === "";
  row.bar.set(pool);
  setText(cells.in_use, count(pool.in_use));
  setText(cells.max_size, count(pool.max_size));
  setText(cells.idle, count(pool.idle));
  setText(cells.opening, count(pool.opening));
  setText(cells.waiting, count(pool.waiting));
  setAttribute(cells.waiting, "class", pool.waiting ? "num waiting-some" : "num");
  setText(cells.oldest, pool.waiting ? duration(pool.oldest_wait_ms) : "–");
  setText(cells.rate, rate(pool.past.rate()));
  row.line.set(pool.past);
}

/** A bar of the resources in use, at work and idle. The numbers beside it say the same. */
function meter() {
  const part = (kind) => svg("rect", { class: kind, height: "10", y: "0" });
  const [use, work, idle] = ["use", "work", "idle"].map(part);
  const ground = svg("rect", { class: "ground", width: "100%", height: "10", rx: "3" });
  const node = svg("svg", { class: "meter", role: "img" }, ground, use, work, idle);
  return {
    node,
    set(pool) {
      const size = Math.max(pool.max_size, pool.total + pool.closing, 1);
      let start = 0;
      const parts = [
        [use, pool.in_use + pool.reserved],
        [work, pool.opening + pool.checking + pool.cleaning + pool.closing],
        [idle, pool.idle],
      ];
      for (const [rect, number] of parts) {
        setAttribute(rect, "x", `${((100 * start) / size).toFixed(2)}%`);
        setAttribute(rect, "width", `${((100 * number) / size).toFixed(2)}%`);
        start += number;
      }
      const words = `${pool.in_use} in use, ${pool.idle} idle, of ${pool.max_size}`;
      setAttribute(node, "aria-label", words);
    },
  };
}
