// The page: which part is shown, the state of the connection, and when to draw.

import { el, setText, show } from "./dom.js";
import { plural } from "./format.js";
import { Overview } from "./overview.js";
import { Pool } from "./pool.js";
import { Stream } from "./stream.js";
import { startTheme } from "./theme.js";

const main = document.getElementById("main");
const state = document.getElementById("state");
const banner = document.getElementById("banner");
const about = document.getElementById("about");

const STATES = {
  connecting: "Connecting",
  live: "Live",
  lost: "Connection lost",
  paused: "Paused",
};

let view = null;
let stream = null;
let drawing = 0;
let lastLive = 0;

function connected(name, reason) {
  // While it tries again, the loss stays visible.
  const shown = name === "connecting" && state.dataset.state === "lost" ? "lost" : name;
  state.dataset.state = shown;
  setText(document.getElementById("state-text"), STATES[shown]);
  if (name === "live") lastLive = Date.now();
  main.classList.toggle("stale", shown === "lost");
  if (name === "live" || name === "paused") show(banner, false);
  if (name === "lost") {
    const since = lastLive ? " The numbers below are the last that came." : "";
    setText(banner, `Connection lost: ${reason}. Trying again.${since}`);
    show(banner, true);
  }
}

/** Draws once for all frames that came since the screen was drawn. */
function draw() {
  if (drawing) return;
  drawing = requestAnimationFrame(() => {
    drawing = 0;
    view?.draw();
  });
}

function told(head) {
  const each = (1000 / head.interval_ms).toFixed(1).replace(/\.0$/, "");
  const parts = [
    `cenote ${head.version}`,
    `up to ${each} updates a second`,
    `${plural(head.clients, "page")} open of ${head.max_clients}`,
    `${plural(head.dropped_frames, "frame")} dropped for slow clients`,
  ];
  setText(about, parts.join(" · "));
}

function open() {
  const first = view === null;
  const pool = /^#\/pool\/(\d+)$/.exec(location.hash)?.[1];
  stream?.end();
  view = pool ? new Pool(Number(pool)) : new Overview();
  main.replaceChildren(view.node);
  const address = pool ? `api/events?pool=${pool}` : "api/events";
  const shown = view;
  stream = new Stream(address, {
    snapshot(data) {
      shown.snapshot(data);
      told(data);
      draw();
    },
    update(data) {
      shown.update(data);
      told(data);
      draw();
    },
    gone() {
      main.replaceChildren(
        el("h1", { tabindex: "-1" }, "The pool is gone"),
        el("p", { class: "empty" }, "It was dropped, or never existed. "),
        el("a", { href: "#/" }, "Show all pools"),
      );
      connected("live");
    },
    state: connected,
  });
  if (!first) {
    // The new part is read from its heading.
    main.querySelector("h1")?.focus();
    scrollTo(0, 0);
  }
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", open);
startTheme(document.getElementById("theme"));
open();
