// Numbers, times and names as people read them.

/** @param {number} n */
export const count = (n) => (n ?? 0).toLocaleString("en");

/** Milliseconds: 6 ms, 1.4 s, 2 min 5 s, 3 h 2 min. @param {number} ms */
export function duration(ms) {
  if (ms === undefined || ms === null || Number.isNaN(ms)) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const s = Math.round(ms / 1000);
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 ? ` ${s % 60} s` : ""}`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h${Math.floor((s % 3600) / 60) ? ` ${Math.floor((s % 3600) / 60)} min` : ""}`;
  return `${Math.floor(s / 86_400)} d${Math.floor((s % 86_400) / 3600) ? ` ${Math.floor((s % 86_400) / 3600)} h` : ""}`;
}

/** How long ago a time was, from now. @param {string | undefined} time @param {number} [now] */
export function ago(time, now = Date.now()) {
  if (!time) return "";
  const ms = now - Date.parse(time);
  if (Math.abs(ms) < 1000) return "now";
  const rough = duration(Math.abs(ms)).replace(/\.\d/, "").replace(/^(\d+ (?:min|h|d)) .*$/, "$1");
  return ms > 0 ? `${rough} ago` : `in ${rough}`;
}

/** @param {string} time */
export const exact = (time) => new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** US dollars. @param {number | null | undefined} usd */
export function cost(usd) {
  if (usd === null || usd === undefined) return "";
  if (usd === 0) return "$0";
  return usd < 0.01 ? `$${usd.toPrecision(2)}` : `$${usd.toFixed(2)}`;
}

/** @param {number} n */
export function bytes(n) {
  if (n < 1024) return `${n} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let i = -1;
  do { n /= 1024; i++; } while (n >= 1024 && i < units.length - 1);
  return `${n.toFixed(n < 10 ? 1 : 0)} ${units[i]}`;
}

/**
 * Text that comes from a model, a tool or a task, for one line: characters that would change how the rest is read are shown by number.
 * @param {any} text
 * @param {number} [most]
 */
export function plain(text, most = 4000) {
  const s = typeof text === "string" ? text : text === undefined || text === null ? "" : JSON.stringify(text);
  const cut = s.length > most ? `${s.slice(0, most)}…` : s;
  // eslint-disable-next-line no-control-regex
  return cut.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, (c) => `\u2423${c.charCodeAt(0).toString(16)}`);
}
