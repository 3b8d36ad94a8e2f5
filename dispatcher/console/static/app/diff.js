// What is different between two texts.
import { html, useMemo } from "./html.js";
import { plain } from "./format.js";

/** @typedef {{kind: " " | "-" | "+", text: string}} Piece */

const most = 4_000_000; // cells of the table of a comparison; beyond them all that is between is different

/**
 * What the second of two lists takes out of the first, and puts in.
 * @param {string[]} a
 * @param {string[]} b
 * @returns {Piece[]}
 */
export function compare(a, b) {
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const pieces = (/** @type {Piece["kind"]} */ kind, /** @type {string[]} */ list) => list.map((text) => ({ kind, text }));
  return [...pieces(" ", a.slice(0, head)), ...between(a.slice(head, a.length - tail), b.slice(head, b.length - tail)), ...pieces(" ", a.slice(a.length - tail))];
}

/** The longest list that both have in this order, and what is around it. @param {string[]} a @param {string[]} b @returns {Piece[]} */
function between(a, b) {
  const pieces = /** @type {Piece[]} */ ([]);
  const add = (/** @type {Piece["kind"]} */ kind, /** @type {string} */ text) => pieces.push({ kind, text });
  if (a.length * b.length > most) {
    a.forEach((t) => add("-", t));
    b.forEach((t) => add("+", t));
    return pieces;
  }
  const wide = b.length + 1;
  const common = new Uint16Array((a.length + 1) * wide); // of a from i on and b from j on
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) common[i * wide + j] = a[i] === b[j] ? common[(i + 1) * wide + j + 1] + 1 : Math.max(common[(i + 1) * wide + j], common[i * wide + j + 1]);
  }
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { add(" ", a[i]); i++; j++; }
    else if (i < a.length && (j === b.length || common[(i + 1) * wide + j] >= common[i * wide + j + 1])) add("-", a[i++]);
    else add("+", b[j++]);
  }
  return pieces;
}

const shownLines = 5000;

/** What changed in a text, by lines. @param {{before: string, after: string}} props */
export function Diff({ before, after }) {
  const rows = useMemo(() => compare(before === "" ? [] : before.split("\n"), after === "" ? [] : after.split("\n")).slice(0, shownLines), [before, after]);
  return html`<pre class="text diff" tabindex="0">${rows.map(({ kind, text }) => html`<span class=${kind === "+" ? "added" : kind === "-" ? "removed" : ""}>${kind} ${plain(text, 2000)}\n</span>`)}</pre>`;
}

/** One of two texts, with the words marked that the other does not have. @param {{text: string, other: string, kind: "-" | "+"}} props */
export function Marked({ text, other, kind }) {
  const pieces = useMemo(() => {
    const a = kind === "-" ? text : other, b = kind === "-" ? other : text;
    return joined(compare(words(a), words(b)).filter((p) => p.kind === " " || p.kind === kind));
  }, [text, other, kind]);
  return html`<pre class="text" dir="auto">${pieces.map((p) => (p.kind === " " ? plain(p.text, 1 << 20) : html`<mark class=${kind === "+" ? "added" : "removed"}>${plain(p.text, 1 << 20)}</mark>`))}</pre>`;
}

const words = (/** @type {string} */ text) => text.match(/\s+|[^\s]+/g) ?? [];

/** Neighbours of a kind as one. @param {Piece[]} pieces */
function joined(pieces) {
  const out = /** @type {Piece[]} */ ([]);
  for (const p of pieces) {
    const last = out[out.length - 1];
    if (last?.kind === p.kind) last.text += p.text;
    else out.push({ ...p });
  }
  return out;
}
