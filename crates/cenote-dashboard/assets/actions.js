// The actions: buttons that change a pool. Each request has the token, which is kept in memory.

import { card, el, setAttribute, setText, show } from "./dom.js";

/** Lasts as long as the page. */
let token = "";

const DANGEROUS = {
  close:
    "The pool is closed for good: it lends nothing any more, and callers that wait get an error. " +
    "This cannot be undone.",
  "trip-breaker": "All acquires fail at once until the breaker is reset.",
  invalidate:
    "All resources that are open now are closed: idle ones at once, the others as they come back.",
};

export class Actions {
  constructor(number) {
    this.number = number;
    this.size = el("input", { type: "number", min: "1", step: "1", inputmode: "numeric" });
    const secret = el("input", { type: "password", autocomplete: "off", spellcheck: "false" });
    secret.value = token;
    secret.addEventListener("input", () => (token = secret.value));
    this.said = el("p", { class: "said", role: "status" });
    const resize = this.button("Resize", "resize", () => ({ max_size: Number(this.size.value) }));
    this.suspend = this.button("Suspend", "suspend");
    this.resume = this.button("Resume", "resume");
    this.trip = this.button("Trip breaker", "trip-breaker");
    this.reset = this.button("Reset breaker", "reset-breaker");
    const invalidate = this.button("Invalidate", "invalidate");
    this.close = this.button("Close pool", "close");
    this.close.classList.add("danger");
    const buttons = [this.suspend, this.resume, invalidate, this.trip, this.reset, this.close];
    const { node } = card(
      "Actions",
      "actions",
      el("div", { class: "row" }, el("label", { class: "token" }, "Token", secret)),
      el("div", { class: "row" }, el("label", { class: "size" }, "New size", this.size), resize),
      el("div", { class: "row" }, buttons),
      this.said,
    );
    this.node = node;
  }

  draw({ actions, pool }) {
    show(this.node, actions);
    if (!this.size.value) this.size.value = pool.max_size;
    setAttribute(this.suspend, "hidden", pool.suspended);
    setAttribute(this.resume, "hidden", !pool.suspended);
    setAttribute(this.trip, "hidden", pool.breaker === "inactive");
    setAttribute(this.reset, "hidden", pool.breaker === "active");
    this.close.disabled = pool.health.verdict === "closed";
  }

  button(title, action, body = () => undefined) {
    const button = el("button", { type: "button" }, title);
    button.addEventListener("click", async () => {
      if (!(action in DANGEROUS) || (await confirmed(title, DANGEROUS[action]))) {
        await this.send(title, action, body());
      }
    });
    return button;
  }

  async send(title, action, body) {
    this.tell("", `${title}: sent`);
    try {
      const response = await fetch(`api/pools/${this.number}/${action}`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-cenote-token": token },
        body: body && JSON.stringify(body),
        cache: "no-store",
      });
      const { done, error } = await response.json();
      if (response.ok) this.tell("good", `Done: ${done}`);
      else this.tell("bad", `Refused: ${error}`);
    } catch {
      this.tell("bad", `${title}: the server does not answer`);
    }
  }

  tell(kind, text) {
    setAttribute(this.said, "data-kind", kind);
    setText(this.said, text);
  }
}

/** Asks for consent. The safe answer has the focus. */
function confirmed(title, warning) {
  const no = el("button", { type: "button" }, "Cancel");
  const yes = el("button", { type: "button", class: "danger" }, title);
  const heading = el("h2", { id: "ask" }, `${title}?`);
  const row = el("div", { class: "row" }, no, yes);
  const dialog = el("dialog", { "aria-labelledby": "ask" }, heading, el("p", {}, warning), row);
  document.body.append(dialog);
  return new Promise((resolve) => {
    no.addEventListener("click", () => dialog.close("no"));
    yes.addEventListener("click", () => dialog.close("yes"));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    dialog.showModal();
    no.focus();
  });
}
