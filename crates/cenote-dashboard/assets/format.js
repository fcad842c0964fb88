// Numbers, durations and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumFractionDigits: 1, notation: "compact" });

/** 1234 is "1,234". */
export function count(number) {
  return whole.format(number);
}

/** 12345.6 is "12.3K". */
export function rate(number) {
  return number < 10 ? number.toFixed(1).replace(/\.0$/, "") : short.format(number);
}

/** Milliseconds as "250 µs", "3.2 s" or "4 min 10 s". */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms === 0) return "0";
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${digits(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

function digits(number) {
  return number < 10 ? number.toFixed(1).replace(/\.0$/, "") : String(Math.round(number));
}

const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

export function time(ms) {
  return clock.format(new Date(ms));
}

/** "3 waiters", "1 waiter". */
export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

/** A name of the code as words: "failed_check" is "failed check". */
export function words(name) {
  return name.replaceAll("_", " ");
}
