// One pool.

import { announce, card, el, setAttribute, setProse, setText, show, sync, verdict } from "./dom.js";
import { count, duration, rate } from "./format.js";
import { Actions } from "./actions.js";
import { Chart, Past } from "./chart.js";
import { Fleet } from "./fleet.js";
import { Slots } from "./slots.js";
import { Counts, Events, Holders, Settings, Sites, Waiters } from "./tables.js";

const FIGURES = [
  ["In use", ({ pool }) => [count(pool.in_use), ` of ${count(pool.max_size)}`]],
  ["Idle", ({ pool }) => [count(pool.idle)]],
  ["Opening", ({ pool }) => [count(pool.opening)]],
  ["Waiting", ({ pool }) => [count(pool.waiting), "", pool.waiting ? "care" : null]],
  ["Longest wait", ({ pool }) => [pool.waiting ? duration(pool.oldest_wait_ms) : "–"]],
  ["Leases/s", (_, past) => [rate(past.rate())]],
  ["Timed out", ({ pool }) => [count(pool.timed_out), "", pool.timed_out ? "care" : null]],
  ["Leaked", ({ pool }) => [count(pool.leaked), "", pool.leaked ? "alarm" : null]],
  ["Breaker", ({ pool }) => [pool.breaker, "", pool.breaker === "active" ? null : "alarm"]],
];

export class Pool {
  constructor(number) {
    this.past = new Past();
    this.data = null;
    this.config = null;
    this.build(number);
  }

  build(number) {
    this.name = el("h1", { tabindex: "-1" }, `Pool ${number}`);
    this.verdict = verdict();
    this.words = el("span", { class: "words" });
    this.suspended = el("span", { class: "flag warn", hidden: true }, "suspended");
    this.figures = FIGURES.map(([title, read]) => {
      const [number, rest] = [el("span"), el("small")];
      const node = el("div", {}, el("dt", {}, title), el("dd", {}, number, rest));
      return { node, number, rest, read };
    });
    this.adviceList = el("ul");
    this.advice = card("Advice", "advice", this.adviceList).node;
    this.slots = new Slots();
    this.charts = this.makeCharts();
    this.fleet = new Fleet();
    this.holders = new Holders();
    this.waiters = new Waiters();
    this.sites = new Sites();
    this.events = new Events();
    this.totals = new Counts("Totals", "third", "");
    this.closes = new Counts("Closes by reason", "third", "No resource was closed yet.");
    this.refusals = new Counts("Refusals by reason", "third", "");
    this.settings = new Settings();
    this.actions = new Actions(number);
    const grid = [
      el("dl", { class: "card figures" }, this.figures.map(({ node }) => node)),
      this.advice,
      this.slots.node,
      ...this.charts.map(({ node }) => node),
      ...this.fleet.nodes,
      this.holders.node,
      this.waiters.node,
      this.sites.node,
      this.events.node,
      this.totals.node,
      this.closes.node,
      this.refusals.node,
      this.settings.node,
      this.actions.node,
    ];
    const crumb = el("a", { class: "crumb", href: "#/" }, "← All pools");
    this.node = el(
      "div",
      {},
      el("nav", { "aria-label": "Breadcrumb" }, crumb),
      el("div", { class: "title" }, this.name, this.verdict.node, this.suspended, this.words),
      el("div", { class: "grid", hidden: true }, grid),
    );
  }

  makeCharts() {
    const time = (column, kind) => {
      return { kind, name: kind, value: (sample) => sample[column]?.[kind] ?? null };
    };
    const times = (column) => ["p50", "p95", "p99"].map((kind) => time(column, kind));
    const use = [
      { kind: "in_use", name: "in use", value: (sample) => sample.in_use },
      { kind: "max_size", name: "size", value: (sample) => sample.max_size },
      { kind: "waiting", name: "waiting", value: (sample) => sample.waiting },
    ];
    const make = (title, options) => {
      const chart = new Chart({ title, ...options });
      const { node } = card(title, "third", chart.node);
      return { node, chart };
    };
    return [
      make("Resources and waiters", { lines: use, area: 0, text: count }),
      make("Wait for a lease", { lines: times("wait_ms"), log: true, text: duration }),
      make("Use of a lease", { lines: times("use_ms"), log: true, text: duration }),
    ];
  }

  snapshot(data) {
    this.past.replace(data.pool.history);
    this.take(data, true);
  }

  update(data) {
    if (data.pool.sample) this.past.add(data.pool.sample);
    this.take(data, false);
  }

  take(data, all) {
    const before = this.data?.pool.health;
    const { health, name } = data.pool;
    const changed = before && before.verdict !== health.verdict;
    if (changed && !health.ready) announce(`${name} is ${health.text}`);
    this.events.take(data.events, all);
    this.fleet.take(data.fleet);
    if (data.config) this.config = data.config;
    this.data = data;
  }

  draw() {
    const { data } = this;
    if (!data) return;
    const { pool } = data;
    document.title = `${pool.name} · Pools`;
    setText(this.name, pool.name);
    this.verdict.set(pool.health);
    setText(this.words, pool.health.text === pool.health.verdict ? "" : pool.health.text);
    show(this.suspended, pool.suspended);
    show(this.node.lastChild, true);
    for (const { node, number, rest, read } of this.figures) {
      const [value, small, kind] = read(data, this.past);
      setText(number, value);
      setText(rest, small ?? "");
      setAttribute(node, "class", kind ?? null);
    }
    show(this.advice, data.advice.length > 0);
    const line = () => ({ node: el("li") });
    const say = ({ node }, text) => setProse(node, text);
    sync(this.adviceList, data.advice, (_, index) => index, line, say);
    this.slots.draw(data);
    for (const { chart } of this.charts) chart.draw(this.past, data.time_ms);
    this.fleet.draw(data.time_ms);
    this.holders.draw(data);
    this.waiters.draw(data);
    this.sites.draw(data);
    this.events.draw();
    this.drawCounts(data);
    this.settings.draw(this.config);
    this.actions.draw(data);
  }

  drawCounts({ totals, closes, refusals }) {
    const show = ([name, value]) => {
      return name.endsWith("_ms") ? [name.slice(0, -3), duration(value)] : [name, value];
    };
    this.totals.draw(Object.entries(totals).map(show));
    const pairs = (counts) => counts.map(({ reason, count }) => [reason, count]);
    this.closes.draw(pairs(closes));
    this.refusals.draw(pairs(refusals));
    setText(this.closes.hint, `${count(totals.closed)} in all`);
    setText(this.refusals.hint, `${count(totals.refused)} in all`);
    setText(this.totals.hint, "since the pool was built");
  }
}
