// Whether today's code decides as a run did.
import { html, useCallback, useEffect, useRef, useState } from "../app/html.js";
import { ask } from "../app/api.js";
import { Failure, Skeleton, Time } from "../app/ui.js";
import { count, plain } from "../app/format.js";
import { Marked } from "../app/diff.js";

/** @typedef {{loading?: boolean, report?: API["RunCheck"], error?: Error}} Check empty: it was not asked for */

/**
 * The check of a run, made when it is asked for, and given up with the page of the run.
 * @param {import("./run.js").RunPath} path
 */
export function useReplay(path) {
  const [state, setState] = useState(/** @type {Check} */ ({}));
  const asking = useRef(/** @type {AbortController | null} */ (null));
  const close = useCallback(() => { asking.current?.abort(); asking.current = null; setState({}); }, []);
  const check = useCallback(async () => {
    if (asking.current) return;
    const own = (asking.current = new AbortController());
    setState({ loading: true });
    let next = /** @type {Check} */ ({});
    try {
      next = { report: await ask(`${path}/check`, { signal: own.signal }) };
    } catch (err) {
      next = { error: /** @type {Error} */ (err) };
    }
    if (asking.current !== own) return; // it was closed meanwhile
    asking.current = null;
    setState(next);
  }, [path]);
  useEffect(() => close, [path]);
  return { state, check, close };
}

const decisions = (/** @type {number} */ n) => `${count(n)} ${n === 1 ? "decision" : "decisions"}`;

/** What came of a check. @param {{of: Check, again: () => void, close: () => void}} props */
export function Checked({ of, again, close }) {
  const { loading, report, error } = of;
  if (!loading && !report && !error) return "";
  return html`<section class="card checked" aria-label="Check by replay" aria-live="polite">
    ${loading && html`<p>Planning every decision again …</p><${Skeleton} rows=${1} />`}
    ${error && html`<${Failure} error=${error} retry=${again} />`}
    ${report && html`<${Report} r=${report} />`}
    <div class="actions"><button onClick=${close}>Close the check</button></div>
  </section>`;
}

/** @param {{r: API["RunCheck"]}} props */
function Report({ r }) {
  const by = html`<span class="faint">Planned by the dispatcher, version ${plain(r.version || "unknown", 100)}.</span>`;
  const d = r.difference;
  if (!d) {
    return html`<p><b>${r.decisions > 0 ? `The same ${decisions(r.decisions)}.` : "There is no decision to check."}</b>
      ${r.unchecked > 0 && ` ${count(r.unchecked)} more ${r.unchecked === 1 ? "depends" : "depend"} on the clock, on prices or on the platform, and ${r.unchecked === 1 ? "is" : "are"} not checked.`} ${by}</p>`;
  }
  return html`<p><b class="bad">Different at step ${d.step}</b>, entry ${d.seq} of the log, <${Time} at=${d.at} />, after ${decisions(r.decisions)} that ${r.decisions === 1 ? "is" : "are"} the same. ${by}</p>
    <div class="sides">
      <div><p class="faint">Recorded</p><${Marked} text=${d.recorded} other=${d.planned} kind="-" /></div>
      <div><p class="faint">Planned today</p><${Marked} text=${d.planned} other=${d.recorded} kind="+" /></div>
    </div>
    ${d.recorded === d.planned && html`<p class="faint">The two differ in details that are not shown here.</p>`}`;
}
