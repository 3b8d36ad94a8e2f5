// Numbers, times and names as people read them.

/** @param {number} n */
export const count = (n) => (n ?? 0).toLocaleString("en");

/** A number of things: 1 item, 2 items. @param {number} n @param {string} what */
export const things = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

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

// Characters that are not seen, or that change how the text around them reads: controls, marks of direction, letters without a width, and tags,
// in which a text can hide another one. Tabs and ends of lines are none.
const hidden = /(?![\t\n])[\p{Cc}\p{Cf}\u034f\u115f\u1160\u17b4\u17b5\u2028\u2029\u3164\uffa0\u{e0100}-\u{e01ef}]/gu;

// Marks over one letter, beyond those that a script has: they would tower over other lines.
const tower = /([\p{Mn}\p{Me}]{8})[\p{Mn}\p{Me}]+/gu;

/**
 * Text that comes from a model, a tool or a task, for one line: characters that are not seen or would change how the rest is read are shown by number.
 * @param {any} text
 * @param {number} [most]
 */
export function plain(text, most = 4000) {
  const s = typeof text === "string" ? text : text === undefined || text === null ? "" : JSON.stringify(text);
  const cut = s.length > most ? `${s.slice(0, most)}…` : s;
  return cut.replace(tower, "$1…").replace(hidden, (c) => `\u2423${c.codePointAt(0)?.toString(16)}`);
}

const escaped = (/** @type {string} */ c) => (c.length > 1 ? `\\U${c.codePointAt(0)?.toString(16).padStart(8, "0")}` : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** A value as JSON to read and change: characters that are not seen are escaped. @param {any} value @param {number} [indent] */
export const json = (value, indent) => JSON.stringify(value, null, indent).replace(hidden, (c) => c.split("").map(escaped).join(""));

/** The same as YAML, which does not read the pairs that JSON writes beyond 16 bits. @param {any} value @param {number} [indent] */
export const yaml = (value, indent) => JSON.stringify(value, null, indent).replace(hidden, escaped);

/**
 * A text as a word of a shell. What a terminal would act on when the word is pasted is escaped: it could end the paste and run the rest.
 * @param {string} text
 */
export function shell(text) {
  if (!text.includes("\t") && text.search(hidden) < 0) return `'${text.replaceAll("'", "'\\''")}'`;
  return `$'${text.replace(/['\\]/g, "\\$&").replaceAll("\t", "\\t").replace(hidden, escaped)}'`;
}
