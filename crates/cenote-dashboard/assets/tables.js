// The lists of one pool: holders, waiters, lines of code, events, counts and settings.

import { card, el, setAttribute, setText, show, sync, table } from "./dom.js";
import { count, duration, plural, time, words } from "./format.js";

/** How many folders of a long path are shown where there is little room. */
const FOLDERS = 1;

/**
 * A line of code, with its folder in a lighter colour. Its title is the whole path, because narrow
 * screens show the file only.
 */
function site(short = false) {
  const [folder, file] = [el("span", { class: "folder" }), el("span")];
  const node = el("code", { class: "site" }, folder, file);
  return {
    node,
    set(text, unknown = "unknown line") {
      const whole = text ?? unknown;
      const parts = whole.split("/");
      const cut = short && parts.length > FOLDERS + 1;
      const path = cut ? `…/${parts.slice(-FOLDERS - 1).join("/")}` : whole;
      setAttribute(node, "title", text);
      const end = text === null ? 0 : path.lastIndexOf("/") + 1;
      setText(folder, path.slice(0, end));
      setText(file, path.slice(end));
    },
  };
}

/** The cells of a row, by their classes. */
export function row(...kinds) {
  return kinds.map((kind) => el("td", { class: kind }));
}

/** A card with a table, and a sentence for the case that it is empty. */
export function list(title, classes, columns, empty, kind = "") {
  const { node: grid, body } = table(title, columns, kind);
  const none = el("p", { class: "empty" }, empty);
  const more = el("p", { class: "more", hidden: true });
  const group = { tabindex: "0", role: "group", "aria-label": `${title}, table` };
  const scroll = el("div", { class: "scroll", ...group }, grid);
  const { node, hint } = card(title, classes, scroll, none, more);
  return {
    node,
    hint,
    fill(items, hidden, keyOf, make, update) {
      show(scroll, items.length > 0);
      show(none, items.length === 0);
      show(more, hidden > 0);
      setText(more, `and ${count(hidden)} more`);
      sync(body, items, keyOf, make, update);
    },
  };
}

export class Holders {
  constructor() {
    const columns = [
      ["Longest", "num"],
      ["Line of code and label"],
      ["Leases", "num"],
      ["Used of that", "num wide"],
      ["Resource", "num wide"],
      ["Task", "wide"],
    ];
    this.list = list("Holders", "", columns, "No lease is out.");
    this.node = this.list.node;
  }

  draw({ holders, holders_hidden: hidden, pool }) {
    setText(this.list.hint, `${plural(pool.in_use, "lease")} out, the longest first`);
    const key = (holder) => `${holder.site} ${holder.label} ${holder.claimed}`;
    this.list.fill(holders, hidden, key, this.make, this.update);
  }

  make() {
    const code = site();
    const label = el("span", { class: "label" });
    const flag = el("span", { class: "flag bad" }, "longer than leak_after");
    const cells = row("num strong", "", "num", "num wide", "num wide", "wide dim tight");
    cells[1].append(code.node, " ", flag, label);
    return { node: el("tr", {}, cells), cells, code, label, flag };
  }

  update(row, holder) {
    const { cells } = row;
    setText(cells[0], duration(holder.longest_ms));
    row.code.set(holder.site);
    const granted = holder.claimed ? null : "granted, not taken yet";
    const label = [holder.label, granted].filter(Boolean).join(" · ");
    setText(row.label, label);
    show(row.label, label !== "");
    show(row.flag, holder.leaked);
    setAttribute(row.node, "class", holder.leaked ? "leaked" : null);
    setText(cells[2], count(holder.count));
    const part = Math.round((100 * holder.used_ms) / Math.max(holder.longest_ms, 1e-3));
    const used = `${duration(holder.used_ms)} ${holder.used} (${Math.min(part, 100)} %)`;
    setText(cells[3], holder.used_ms === null ? "–" : used);
    setText(cells[4], holder.resource);
    setText(cells[5], holder.task ?? "–");
  }
}

export class Waiters {
  constructor() {
    const columns = [["Place", "num"], ["Waited", "num"], ["Line of code"]];
    this.list = list("Waiters", "half", columns, "No caller waits.");
    this.node = this.list.node;
  }

  draw({ waiters, waiters_hidden: hidden, pool }) {
    const first = `the first for ${duration(pool.oldest_wait_ms)}`;
    const line = `${plural(pool.waiting, "caller")} in line, ${first}`;
    setText(this.list.hint, pool.waiting ? line : "");
    const items = waiters.map((waiter, index) => ({ ...waiter, place: index + 1 }));
    this.list.fill(items, hidden, (item) => item.place, this.make, this.update);
  }

  make() {
    const code = site(true);
    const cells = row("num dim", "num strong", "");
    cells[2].append(code.node);
    return { node: el("tr", {}, cells), cells, code };
  }

  update({ cells, code }, waiter) {
    setText(cells[0], waiter.place);
    setText(cells[1], duration(waiter.waited_ms));
    code.set(waiter.site);
  }
}

export class Sites {
  constructor() {
    const columns = [
      ["Line of code"],
      ["Leases", "num"],
      ["Held", "num"],
      ["Waited", "num wide"],
      ["Timeouts", "num wide"],
    ];
    const empty = "No lease since this page was started.";
    this.list = list("Totals by line of code", "half", columns, empty);
    this.node = this.list.node;
  }

  draw({ sites }) {
    setText(this.list.hint, "since the page was started");
    this.list.fill(sites, 0, (item) => `${item.site} ${item.others}`, this.make, this.update);
  }

  make() {
    const code = site(true);
    const cells = row("", "num", "num strong", "num wide", "num wide");
    cells[0].append(code.node);
    return { node: el("tr", {}, cells), cells, code };
  }

  update({ cells, code }, item) {
    code.set(item.site, item.others ? "all other lines" : "unknown line");
    setText(cells[1], count(item.acquired));
    setText(cells[2], duration(item.held_ms));
    setText(cells[3], duration(item.waited_ms));
    setText(cells[4], count(item.timed_out));
  }
}

const LEVELS = { notice: "plain", warning: "warn", trouble: "bad" };

export class Events {
  constructor() {
    this.entries = new Map();
    const columns = [["Time"], ["Event"], ["Times", "num"], ["What"]];
    const empty = "Nothing happened since this page was started.";
    this.list = list("Recent events", "", columns, empty, "events");
    this.node = this.list.node;
    setText(this.list.hint, "without acquires and releases, which the charts count");
  }

  /** Takes entries that are new or have changed. */
  take(entries, all) {
    if (all) this.entries.clear();
    for (const entry of entries) this.entries.set(entry.id, entry);
    const oldest = Math.max(...this.entries.keys(), 0) - 100;
    for (const id of this.entries.keys()) if (id <= oldest) this.entries.delete(id);
  }

  draw() {
    const items = [...this.entries.values()].sort((a, b) => b.time_ms - a.time_ms || b.id - a.id);
    this.list.fill(items, 0, (entry) => entry.id, this.make, this.update);
  }

  make() {
    const code = site(true);
    const flag = el("span", { class: "flag" });
    const text = el("span");
    const cells = row("dim tight", "", "num", "wrap");
    cells[1].append(flag);
    cells[3].append(text, " ", code.node);
    return { node: el("tr", {}, cells), cells, code, flag, text };
  }

  update({ cells, code, flag, text }, entry) {
    setText(cells[0], time(entry.time_ms));
    setText(flag, words(entry.kind));
    setAttribute(flag, "class", `flag ${LEVELS[entry.level]}`);
    setText(cells[2], entry.count > 1 ? `×${count(entry.count)}` : "");
    const parts = [
      entry.text,
      entry.resource === null ? "" : `resource ${entry.resource}`,
      entry.took_ms === null ? "" : `after ${duration(entry.took_ms)}`,
    ];
    setText(text, parts.filter(Boolean).join(", "));
    show(code.node, entry.site !== null);
    if (entry.site !== null) code.set(entry.site);
  }
}

/** Counters by name. */
export class Counts {
  constructor(title, classes, empty) {
    this.dl = el("dl", { class: "counts" });
    this.none = el("p", { class: "empty" }, empty);
    const { node, hint } = card(title, classes, this.dl, this.none);
    this.node = node;
    this.hint = hint;
  }

  draw(items) {
    show(this.dl, items.length > 0);
    show(this.none, items.length === 0);
    const make = () => {
      const [name, value] = [el("dt"), el("dd")];
      return { node: el("div", {}, name, value), name, value };
    };
    sync(this.dl, items, ([name]) => name, make, (row, [name, value]) => {
      setText(row.name, words(name));
      setText(row.value, typeof value === "number" ? count(value) : value);
      setAttribute(row.node, "class", value === 0 || value === "0" ? "zero" : null);
    });
  }
}

/** The settings: those that differ from their default, and the others on request. */
export class Settings {
  constructor() {
    const head = [["Setting"], ["Value"], ["Default"]];
    this.changed = table("Settings that differ from their default", head);
    this.same = table("Settings at their default", head);
    this.summary = el("summary");
    this.none = el("p", { class: "empty" }, "Every setting has its default.");
    const rest = el("details", {}, this.summary, this.same.node);
    const { node, hint } = card("Configuration", "", this.changed.node, this.none, rest);
    this.node = node;
    this.hint = hint;
  }

  draw(settings) {
    const changed = settings.filter((setting) => setting.changed);
    const same = settings.filter((setting) => !setting.changed);
    const [some, all] = [count(changed.length), count(settings.length)];
    setText(this.hint, `${some} of ${all} differ from their default`);
    setText(this.summary, `${plural(same.length, "setting")} at their default`);
    show(this.changed.node, changed.length > 0);
    show(this.none, changed.length === 0);
    const make = () => {
      const cells = [el("th", { scope: "row" }, el("code")), el("td"), el("td", { class: "dim" })];
      return { node: el("tr", {}, cells), cells };
    };
    const update = ({ cells }, setting) => {
      setText(cells[0].firstChild, setting.name);
      setText(cells[1], setting.value);
      setAttribute(cells[1], "class", setting.changed ? "strong" : null);
      setText(cells[2], setting.default);
    };
    sync(this.changed.body, changed, (setting) => setting.name, make, update);
    sync(this.same.body, same, (setting) => setting.name, make, update);
  }
}
