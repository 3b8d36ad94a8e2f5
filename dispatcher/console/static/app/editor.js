// A text of many lines that the dispatcher checks while it is written: its mistakes stand beside their lines, and below as a list.
import { html, useEffect, useId, useRef, useState } from "./html.js";
import { Problem } from "./api.js";
import { plain } from "./format.js";

/** How long one must have stopped typing before a text is checked, and before a check that failed is made again, in milliseconds. */
const pause = 300, again = 3000;

/** Height of a line and the room above the first, in pixels, as in style.css. */
const line = 20, room = 6;

/** @typedef {{ok?: boolean, problems?: API["TextProblem"][]}} Verdict what a check of the API replies */

/**
 * Checks a text once its writer pauses. Nothing is stored by that.
 * @template {Verdict} V
 * @param {string | null} text null: there is nothing to check
 * @param {(text: string, signal: AbortSignal) => Promise<V>} check
 * @returns {{verdict: V | undefined, fine: V | undefined, problems: API["TextProblem"][], checking: boolean}} fine: the verdict about this very
 * text, if it is right; the verdict before stays until there is another
 */
export function useCheck(text, check) {
  const [last, setLast] = useState(/** @type {{of: string | null, verdict?: V, error?: Error}} */ ({ of: null }));
  const [turn, setTurn] = useState(0);
  const latest = useRef(check);
  latest.current = check;
  useEffect(() => {
    if (text === null) return setLast({ of: null });
    const stop = new AbortController();
    let timer = window.setTimeout(async () => {
      try {
        const verdict = await latest.current(text, stop.signal);
        if (!stop.signal.aborted) setLast({ of: text, verdict });
      } catch (err) {
        if (stop.signal.aborted) return;
        setLast({ of: text, error: /** @type {Error} */ (err) });
        if (!(err instanceof Problem) || err.retryable) timer = window.setTimeout(() => setTurn((n) => n + 1), again);
      }
    }, pause);
    return () => { stop.abort(); clearTimeout(timer); };
  }, [text, turn]);
  const current = text !== null && last.of === text;
  const problems = text === null ? [] : last.error ? [{ reason: `It cannot be checked: ${last.error.message}` }] : (last.verdict?.problems ?? []);
  return { verdict: last.verdict, fine: current && last.verdict?.ok ? last.verdict : undefined, problems, checking: text !== null && !current };
}

/**
 * @param {{label: string, name?: string, hint?: string, text: string, rows?: number, problems: API["TextProblem"][], checking: boolean, change: (text: string) => void}} props
 */
export function Editor({ label, name, hint, text, rows = 16, problems, checking, change }) {
  const area = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const [top, setTop] = useState(0);
  const id = useId();
  const lines = text.split("\n").length;
  const wrong = new Map(problems.filter((p) => p.line).map((p) => [Number(p.line), p.reason]));
  /** Puts the cursor at the beginning of a line. @param {number} n */
  const go = (n) => {
    const e = area.current;
    if (!e) return;
    const at = text.split("\n").slice(0, n - 1).reduce((sum, l) => sum + l.length + 1, 0);
    e.focus();
    e.setSelectionRange(at, at);
    e.scrollTop = Math.max(0, (n - 3) * line);
  };
  const shown = (/** @type {number} */ n) => { const y = room + (n - 1) * line - top; return y >= 0 && y <= rows * line ? y : null; };
  return html`<div class="field"><label for=${id}>${label}</label>
    <div class="editor">
      <div class="numbers" aria-hidden="true"><div style=${{ transform: `translateY(${-top}px)` }}>${Array.from({ length: lines }, (_, i) => html`<div class=${wrong.has(i + 1) ? "bad" : ""}>${i + 1}</div>`)}</div></div>
      <textarea ref=${area} id=${id} name=${name} rows=${rows} wrap="off" spellcheck=${false} value=${text} aria-invalid=${problems.length > 0} aria-describedby=${`${id}-said`}
        onScroll=${(/** @type {Event} */ e) => setTop(/** @type {Element} */ (e.target).scrollTop)} onInput=${(/** @type {Edited} */ e) => change(e.target.value)}></textarea>
      ${[...wrong].map(([n, reason]) => { const y = shown(n); return y !== null && html`<div class="beside" aria-hidden="true" style=${{ top: `${y + line}px` }}>${plain(reason, 200)}</div>`; })}
    </div>
    ${hint && html`<small>${hint}</small>`}
    <div class="problems" id=${`${id}-said`} role="status" aria-live="polite">${problems.map((p) => html`<p class="bad">${p.line ? html`<button type="button" class="quiet" onClick=${() => go(Number(p.line))}>Line ${p.line}</button> ` : ""}${p.field && html`<code>${plain(p.field, 200)}</code>: `}${plain(p.reason, 1000)}</p>`)}
      ${!problems.length && html`<p class="faint">${checking ? "Checking…" : "No mistakes."}</p>`}</div></div>`;
}
