// The stream of frames: connects, connects again after a loss, and rests while the page is hidden.

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8000;
/** A stream that is silent for this long is dead, whatever the network says. */
const SILENCE = 10000;
/** How often a client that misses frames may ask for all data again. */
const RESYNC_PAUSE = 5000;

/**
 * Reads the stream at a relative address. `on` has the functions `snapshot`, `update`, `gone` and
 * `state`, which is told "connecting", "live", "lost" or "paused" and a reason.
 */
export class Stream {
  constructor(address, on) {
    this.address = address;
    this.on = on;
    this.pause = FIRST_PAUSE;
    this.lastResync = 0;
    this.ended = false;
    this.onVisibility = () => (document.hidden ? this.rest() : this.connect());
    document.addEventListener("visibilitychange", this.onVisibility);
    if (document.hidden) this.on.state("paused");
    else this.connect();
  }

  end() {
    this.ended = true;
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.cancel();
  }

  rest() {
    this.cancel();
    this.on.state("paused");
  }

  cancel() {
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    this.abort?.abort();
    this.abort = null;
  }

  async connect() {
    this.cancel();
    if (this.ended) return;
    const abort = new AbortController();
    this.abort = abort;
    this.on.state("connecting");
    let reason = "";
    try {
      reason = await this.read(abort);
    } catch (error) {
      reason = error.name === "AbortError" ? "no data" : "the server does not answer";
    }
    if (this.ended || this.abort !== abort) return;
    this.cancel();
    if (reason === "gone") return;
    this.on.state("lost", reason);
    const jitter = 0.75 + Math.random() / 2;
    this.timer = setTimeout(() => this.connect(), this.pause * jitter);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }

  /** Returns why the stream has ended. */
  async read(abort) {
    this.listen(abort);
    const response = await fetch(this.address, { signal: abort.signal, cache: "no-store" });
    if (!response.ok) {
      const { error } = await response.json().catch(() => ({}));
      if (response.status === 404 && error === "no such pool") {
        this.on.gone();
        return "gone";
      }
      return error ?? `the server sent status ${response.status}`;
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return "the server has ended the stream";
      this.listen(abort);
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        if (this.abort !== abort) return "";
        if (this.take(part)) return "gone";
      }
    }
  }

  /** Gives up if nothing is heard for a while. */
  listen(abort) {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => abort.abort(), SILENCE);
  }

  /** Returns whether this was the last event. */
  take(part) {
    const fields = {};
    for (const line of part.split("\n")) {
      const colon = line.indexOf(": ");
      if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
    }
    const data = JSON.parse(fields.data);
    if (fields.event === "gone") {
      this.on.gone();
      return true;
    }
    if (fields.event === "snapshot") {
      this.pause = FIRST_PAUSE;
      this.on.state("live");
      this.on.snapshot(data);
    } else {
      const missed = data.frame !== this.frame + 1;
      this.on.update(data);
      if (missed && performance.now() - this.lastResync > RESYNC_PAUSE) {
        // A frame that was missed may have had a sample or an event.
        this.lastResync = performance.now();
        setTimeout(() => this.connect());
      }
    }
    this.frame = data.frame;
    return false;
  }
}
