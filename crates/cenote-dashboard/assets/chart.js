// Charts of the last minutes, and the small line in the list of pools.

import { el, setAttribute, setText, svg } from "./dom.js";
import { duration } from "./format.js";

/** As much as the server keeps. */
const MOST = 150;
const MINUTES = 5;

/** The samples of a pool, oldest first. */
export class Past {
  constructor() {
    this.samples = [];
    this.version = 0;
    this.every = 2000;
  }

  replace(history) {
    const names = Object.keys(history).filter((name) => Array.isArray(history[name]));
    this.every = history.every_ms;
    this.samples = history.time_ms.map((_, index) => {
      return Object.fromEntries(names.map((name) => [name, history[name][index]]));
    });
    this.version += 1;
  }

  add(sample) {
    const last = this.samples.at(-1);
    if (last && last.time_ms >= sample.time_ms) return;
    this.samples.push(sample);
    if (this.samples.length > MOST) this.samples.shift();
    this.version += 1;
  }

  rate() {
    return this.samples.at(-1)?.acquired_per_second ?? 0;
  }
}

/** Lines that are out of date. Some are drawn at once, so that the page does not stutter. */
const stale = new Map();
const AT_ONCE = 16;

function drawSome() {
  let left = AT_ONCE;
  for (const [draw, past] of stale) {
    stale.delete(draw);
    draw(past);
    if (--left === 0) break;
  }
  if (stale.size) requestAnimationFrame(drawSome);
}

/** A line of the resources in use, with marks where callers waited. */
export function spark() {
  const area = svg("path", { class: "area" });
  const line = svg("path", { class: "line" });
  const waits = svg("path", { class: "waits" });
  const floor = svg("path", { class: "floor", d: "M0 25h128" });
  const frame = { class: "spark", viewBox: "0 0 128 26", preserveAspectRatio: "none" };
  const parts = [floor, area, line, waits];
  const node = svg("svg", { ...frame, role: "img", "aria-label": "In use" }, parts);
  let drawn = -1;
  const draw = ({ samples }) => {
    const step = 128 / (MOST - 1);
    const left = 128 - (samples.length - 1) * step;
    const top = Math.max(1, ...samples.map((sample) => Math.max(sample.max_size, sample.in_use)));
    const x = (index) => (left + index * step).toFixed(1);
    const y = (value) => (24 - (value / top) * 22).toFixed(1);
    const points = samples.map((sample, index) => `${x(index)} ${y(sample.in_use)}`);
    const path = points.length ? `M${points.join("L")}` : "";
    setAttribute(line, "d", path);
    setAttribute(area, "d", path && `${path}L128 26L${x(0)} 26z`);
    const width = Math.max(step, 1).toFixed(1);
    const mark = (sample, index) => (sample.waiting ? `M${x(index)} 25h${width}` : "");
    setAttribute(waits, "d", samples.map(mark).join(""));
    const uses = samples.map((sample) => sample.in_use);
    const [least, most] = [Math.min(...uses), Math.max(...uses)];
    const range = uses.length ? `between ${least} and ${most}` : "not known yet";
    setAttribute(node, "aria-label", `In use in the last 5 minutes: ${range}`);
  };
  return {
    node,
    set(past) {
      if (past.version === drawn) return;
      drawn = past.version;
      if (stale.size === 0) requestAnimationFrame(drawSome);
      stale.set(draw, past);
    },
  };
}

const HEIGHT = 148;
const FOOT = 18;
const HEAD = 8;

/**
 * A chart over time. `lines` are pairs of a class and a function from a sample to a value or null.
 * The arrow keys and the pointer choose a moment, whose values are shown below.
 */
export class Chart {
  constructor({ title, lines, log = false, area = null, text = String }) {
    Object.assign(this, { title, lines, log, area, text });
    this.chosen = null;
    this.drawn = "";
    this.rules = svg("g");
    this.paths = lines.map(({ kind }) => svg("path", { class: kind }));
    this.ground = svg("path", { class: "area" });
    const hidden = { visibility: "hidden" };
    this.cursor = svg("line", { class: "cursor", y1: HEAD, y2: HEIGHT - FOOT, ...hidden });
    const slider = { role: "slider", tabindex: "0", "aria-label": `${title}, over time` };
    const parts = [this.rules, this.ground, ...this.paths, this.cursor];
    this.plot = svg("svg", { class: "plot", ...slider }, parts);
    this.values = lines.map(() => el("b"));
    this.when = el("li", { class: "when" });
    const keys = lines.map(({ kind, name }, index) => {
      const stroke = svg("path", { class: kind, d: "M0 4h18" });
      const sample = svg("svg", { "aria-hidden": "true" }, stroke);
      return el("li", {}, sample, `${name} `, this.values[index]);
    });
    const legend = el("ul", { class: "keys" }, keys, this.when);
    this.node = el("div", { class: "chart" }, this.plot, legend);
    this.listen();
  }

  listen() {
    const choose = (index) => {
      this.chosen = index;
      this.readOut();
    };
    this.plot.addEventListener("pointermove", (event) => {
      const box = this.plot.getBoundingClientRect();
      choose(this.nearest(event.clientX - box.left));
    });
    this.plot.addEventListener("pointerleave", () => choose(null));
    this.plot.addEventListener("blur", () => choose(null));
    this.plot.addEventListener("keydown", (event) => {
      const last = (this.past?.samples.length ?? 0) - 1;
      const now = this.chosen ?? last;
      const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      choose(Math.max(0, Math.min(last, next)));
    });
    new ResizeObserver(() => this.past && this.draw(this.past, this.now)).observe(this.plot);
  }

  draw(past, now) {
    this.past = past;
    this.now = now;
    const width = this.plot.clientWidth;
    const state = `${past.version} ${width}`;
    if (!width || state === this.drawn) return;
    this.drawn = state;
    const { samples } = past;
    const end = samples.at(-1)?.time_ms ?? now;
    const span = MINUTES * 60000;
    const all = samples.flatMap((sample) => this.lines.map(({ value }) => value(sample) ?? 0));
    const scale = this.log ? logScale(all) : linearScale(all);
    this.left = 44;
    const right = width - 4;
    this.x = (sample) => right - ((end - sample.time_ms) / span) * (right - this.left);
    const y = (value) => HEIGHT - FOOT - scale.at(value) * (HEIGHT - FOOT - HEAD);
    this.drawRules(scale, y, right);
    this.lines.forEach(({ value }, index) => {
      setAttribute(this.paths[index], "d", this.path(samples, value, y, past.every));
    });
    if (this.area !== null && samples.length) {
      const line = this.path(samples, this.lines[this.area].value, y, Infinity);
      const [first, last] = [this.x(samples[0]), this.x(samples.at(-1))];
      const floor = HEIGHT - FOOT;
      const down = `L${last.toFixed(1)} ${floor}L${first.toFixed(1)} ${floor}z`;
      setAttribute(this.ground, "d", line + down);
    }
    this.readOut();
  }

  /** A line is broken where nothing was measured. */
  path(samples, value, y, every) {
    let path = "";
    let before = null;
    for (const sample of samples) {
      const now = value(sample);
      if (now === null || now === undefined) {
        before = null;
        continue;
      }
      const joined = before && sample.time_ms - before.time_ms < every * 4;
      const point = `${this.x(sample).toFixed(1)} ${y(now).toFixed(1)}`;
      // A lone point is drawn as a short line.
      path += joined ? `L${point}` : `M${point}h.1`;
      before = sample;
    }
    return path;
  }

  drawRules(scale, y, right) {
    const rules = scale.rules.map((value) => {
      const text = this.text(value).replace(".0 ", " ");
      return [
        svg("line", { class: "rule", x1: this.left, x2: right, y1: y(value), y2: y(value) }),
        svg("text", { x: this.left - 6, y: y(value) + 4, "text-anchor": "end" }, text),
      ];
    });
    const times = [MINUTES, MINUTES / 2, 0].map((minutes) => {
      const x = right - (minutes / MINUTES) * (right - this.left);
      const anchor = minutes === 0 ? "end" : minutes === MINUTES ? "start" : "middle";
      const text = minutes ? `−${minutes} min` : "now";
      return svg("text", { x, y: HEIGHT - 3, "text-anchor": anchor }, text);
    });
    this.rules.replaceChildren(...rules.flat(), ...times);
  }

  nearest(x) {
    const samples = this.past?.samples ?? [];
    let best = null;
    let distance = Infinity;
    samples.forEach((sample, index) => {
      const off = Math.abs(this.x(sample) - x);
      if (off < distance) [best, distance] = [index, off];
    });
    return best;
  }

  /** Shows the values of the chosen moment, or of the last one. */
  readOut() {
    const samples = this.past?.samples ?? [];
    const index = Math.min(this.chosen ?? samples.length - 1, samples.length - 1);
    const sample = samples[index];
    const shown = this.lines.map(({ value }) => {
      const now = sample ? value(sample) : null;
      return now === null || now === undefined ? "–" : this.text(now);
    });
    shown.forEach((text, line) => setText(this.values[line], text));
    const chosen = this.chosen !== null && sample;
    const seconds = chosen ? Math.round((this.now - sample.time_ms) / 1000) : 0;
    const ago = chosen ? `${duration(seconds * 1000)} ago` : "";
    setText(this.when, ago);
    setAttribute(this.cursor, "visibility", chosen ? "visible" : "hidden");
    if (chosen) {
      setAttribute(this.cursor, "x1", this.x(sample));
      setAttribute(this.cursor, "x2", this.x(sample));
    }
    const words = this.lines.map(({ name }, line) => `${name} ${shown[line]}`).join(", ");
    setAttribute(this.plot, "aria-valuemin", "0");
    setAttribute(this.plot, "aria-valuemax", String(Math.max(0, samples.length - 1)));
    setAttribute(this.plot, "aria-valuenow", String(Math.max(0, index)));
    const told = sample ? `${ago || "now"}: ${words}` : "nothing measured yet";
    setAttribute(this.plot, "aria-valuetext", told);
  }
}

function linearScale(values) {
  const most = Math.max(1, ...values);
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].find((factor) => factor * power >= rough) * power);
  const top = Math.ceil(most / step) * step;
  const rules = [];
  for (let value = 0; value <= top; value += step) rules.push(value);
  return { at: (value) => value / top, rules };
}

/** From a microsecond or so upwards, in powers of ten. Zero is on the ground. */
function logScale(values) {
  const positive = values.filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.min(1, ...positive)));
  const high = Math.max(low + 2, Math.ceil(Math.log10(Math.max(1e-3, ...positive))));
  const step = Math.max(1, Math.ceil((high - low) / 4));
  const rules = [];
  for (let power = low; power <= high; power += step) rules.push(10 ** power);
  const at = (value) => (value > 0 ? Math.max(0, (Math.log10(value) - low) / (high - low)) : 0);
  return { at, rules };
}
