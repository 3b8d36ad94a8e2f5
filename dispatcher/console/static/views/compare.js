// Two runs side by side: step by step until they part, and what is different from there on.
import { html, useMemo, useRef, useState } from "../app/html.js";
import { to } from "../app/route.js";
import { Failure, Page, RunLink, Skeleton, Status } from "../app/ui.js";
import { cost, count, duration, plain, things } from "../app/format.js";
import { Marked } from "../app/diff.js";
import { Markdown, Raw } from "../app/text.js";
import { Decide, forAPerson } from "./decide.js";
import { useCaughtUp, useRun } from "./run.js";

/** @typedef {import("../app/fold.js").Run} Run */
/** @typedef {import("../app/fold.js").Step} Step */

/** @param {{id: string}} props the ids of two runs */
export function View({ id }) {
  const [left, right = ""] = id.split("/");
  if (!right) return html`<${Page} title="Compare"><p>Choose two runs in the <a href=${to("/runs")}>list of runs</a>, or fork a run.</p><//>`;
  return html`<${Pair} left=${left} right=${right} />`;
}

/** @param {{left: string, right: string}} props */
function Pair({ left, right }) {
  const a = useRun(left), b = useRun(right);
  const ready = [useCaughtUp(left, a.run), useCaughtUp(right, b.run)].every((x) => x.ready);
  const drawn = useRef(false);
  const failed = [a, b].filter((x) => x.error);
  const failure = failed[0]?.error && html`<${Failure} error=${failed[0].error} retry=${() => failed.forEach((x) => x.retry())} />`;
  if (failed.some((x) => x.run.events === 0)) return html`<${Page} title="Compare">${failure}<//>`;
  if (!drawn.current && !ready) return html`<${Page} title="Compare two runs" lead=${html`<${RunLink} id=${left} /> and <${RunLink} id=${right} />`}><${Skeleton} rows=${12} /><//>`;
  drawn.current = true;
  const sides = [{ id: left, run: a.run, steps: whole(a.run, right, b.run) }, { id: right, run: b.run, steps: whole(b.run, left, a.run) }];
  return html`<${Page} title="Compare two runs" lead=${html`<${RunLink} id=${left} /> and <${RunLink} id=${right} />${origin(b.run, left)}`}>
    ${failure}
    <${Figures} sides=${sides} />
    ${sides.some((s) => needy(s.run)) && html`<div class="sides">${sides.map((s) => html`<${Needs} key=${s.id} id=${s.id} run=${s.run} />`)}</div>`}
    <${Steps} sides=${sides} />
  <//>`;
}

const needy = (/** @type {Run} */ run) => Boolean(run.result?.error || (run.waiting && forAPerson(run.waiting.reason)));

/** Why a run failed, or what it waits for. @param {{id: string, run: Run}} props */
function Needs({ id, run }) {
  if (!needy(run)) return html`<div></div>`;
  if (run.result?.error) return html`<div class="failure"><p>${plain(run.result.error.message, 2000)}</p></div>`;
  return html`<div class="card waits"><${Decide} key=${`${run.waiting.reason} ${run.waiting.callId ?? run.waiting.at}`} id=${id} waiting=${run.waiting} call=${run.steps.flatMap((s) => s.calls).find((c) => c.id === run.waiting.callId)} /></div>`;
}

/** @param {Run} run @param {string} other */
function origin(run, other) {
  return run.forkedFrom?.run === other ? `, its fork from step ${run.forkedFrom.step}` : "";
}

/** The steps of a run, those that it was forked with too if they are at hand. @param {Run} run @param {string} otherID @param {Run} other @returns {Step[]} */
function whole(run, otherID, other) {
  const from = run.forkedFrom;
  if (from?.run !== otherID) return run.steps;
  return [...other.steps.filter((s) => s.n < from.step), ...run.steps];
}

/** @typedef {{id: string, run: Run, steps: Step[]}} Side */

/** @type {[string, (s: Side) => number, (n: number) => string][]} */
const figures = [
  ["Steps", (s) => s.steps.length, count],
  ["Tool calls", (s) => calls(s).length, count],
  ["Failed calls", (s) => calls(s).filter((c) => c.error).length, count],
  ["Tokens", (s) => sum(s.steps, (x) => x.usage?.total), count],
  ["Cost", (s) => sum(s.steps, (x) => x.cost), cost],
  ["Time in models", (s) => sum(s.steps, (x) => x.millis), duration],
  ["Time in tools", (s) => sum(calls(s), (c) => c.millis), duration],
];

const calls = (/** @type {Side} */ s) => s.steps.flatMap((x) => x.calls);

/** @template T @param {T[]} list @param {(x: T) => number | undefined} of */
const sum = (list, of) => list.reduce((n, x) => n + (of(x) ?? 0), 0);

/** @param {{sides: Side[]}} props */
function Figures({ sides: [a, b] }) {
  const models = (/** @type {Side} */ s) => [...new Set(s.steps.filter((x) => x.model).map((x) => `${x.provider}/${x.model}`))].join(", ");
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Figures"><table><thead><tr><td></td><th class="number">The first</th><th class="number">The second</th><th class="number">Difference</th></tr></thead><tbody>
    <tr><th scope="row">Status</th>${[a, b].map((s) => html`<td class="number" key=${s.id}><${Status} of=${s.run.status} /></td>`)}<td></td></tr>
    ${figures.map(([name, of, form]) => html`<tr key=${name}><th scope="row">${name}</th><td class="number">${form(of(a))}</td><td class="number">${form(of(b))}</td><td class="number">${difference(of(a), of(b), form)}</td></tr>`)}
    <tr><th scope="row">Agent</th>${[a, b].map((s) => html`<td class="number" key=${s.id}>${plain(s.run.agent, 64)}${s.run.revision ? `@${s.run.revision}` : ""}</td>`)}<td></td></tr>
    <tr><th scope="row">Model</th>${[a, b].map((s) => html`<td class="number" key=${s.id}>${plain(models(s), 200)}</td>`)}<td></td></tr></tbody></table></div>`;
}

/** @param {number} a @param {number} b @param {(n: number) => string} form */
function difference(a, b, form) {
  if (a === b) return "the same";
  const percent = a ? ` (${b > a ? "+" : "−"}${count(Math.round((Math.abs(b - a) / a) * 100))}%)` : "";
  return `${b > a ? "+" : "−"}${form(Math.abs(b - a))}${percent}`;
}

const shownAtOnce = 40; // steps

/** @param {{sides: Side[]}} props */
function Steps({ sides: [a, b] }) {
  const [more, setMore] = useState(shownAtOnce);
  const rows = useMemo(() => pairs(a.steps, b.steps), [a.run, b.run]);
  const apart = rows.findIndex((r) => !r.same);
  const kept = apart < 0 ? rows : rows.slice(0, apart);
  const others = apart < 0 ? [] : rows.slice(apart);
  return html`<h2>Steps</h2>
    ${kept.length > 0 && html`<details class="card"><summary>${kept.length === 1 ? "The first step is" : `The first ${count(kept.length)} steps are`} the same in both</summary>
      <div class="stack">${kept.slice(0, more).map((r) => html`<${One} key=${r.n} s=${r.a ?? r.b} />`)}</div></details>`}
    ${apart < 0 && rows.length > 0 && html`<p>No step differs.</p>`}
    ${apart >= 0 && html`<p class="parts"><b>They differ from step ${rows[apart].n} on.</b></p>`}
    ${others.slice(0, more).map((r) => html`<div class="sides pair" key=${r.n}>
      <${One} s=${r.a} other=${r.b} n=${r.n} kind="-" /><${One} s=${r.b} other=${r.a} n=${r.n} kind="+" /></div>`)}
    ${others.length > more && html`<p><button onClick=${() => setMore(more + shownAtOnce)}>Show more of ${count(others.length - more)} steps</button></p>`}`;
}

/** The steps of two runs by their number. @param {Step[]} a @param {Step[]} b @returns {{n: number, a?: Step, b?: Step, same: boolean}[]} */
function pairs(a, b) {
  const left = new Map(a.map((s) => [s.n, s])), right = new Map(b.map((s) => [s.n, s]));
  return [...new Set([...left.keys(), ...right.keys()])].sort((x, y) => x - y).map((n) => {
    const one = left.get(n), two = right.get(n);
    return { n, a: one, b: two, same: Boolean(one && two && told(one) === told(two)) };
  });
}

/** What a step did, without when and for how much. @param {Step} s */
const told = (s) => JSON.stringify([s.text, s.model, s.calls.map((c) => [c.name, c.args, c.result, Boolean(c.error)])]);

/** A step of one of the two. @param {{s?: Step, other?: Step, n?: number, kind?: "-" | "+"}} props */
function One({ s, other, n, kind = "+" }) {
  if (!s) return html`<section class="card faint">There is no step ${n}.</section>`;
  return html`<section class="card turn"><header><b>Step ${s.n}</b>${s.model && html`<span>${plain(`${s.provider}/${s.model}`, 100)}</span>`}${s.usage && html`<span>${things(s.usage.total, "token")}</span>`}${s.cost ? html`<span>${cost(s.cost)}</span>` : ""}${s.millis !== undefined && html`<span>${duration(s.millis)}</span>`}</header>
    ${s.text && (other && other.text !== s.text ? html`<${Marked} text=${s.text} other=${other.text} kind=${kind} />` : html`<${Markdown} text=${s.text} />`)}
    ${s.calls.map((c, i) => html`<${CallOf} key=${c.id} c=${c} other=${other && (other.calls[i] ?? null)} kind=${kind} />`)}</section>`;
}

const textOf = (/** @type {any} */ v) => (typeof v === "string" ? v : v === undefined ? "" : JSON.stringify(v));

/** @param {{c: import("../app/fold.js").Call, other?: import("../app/fold.js").Call | null, kind: "-" | "+"}} props other: the call of the other run, null if it has none here */
function CallOf({ c, other, kind }) {
  const part = (/** @type {any} */ v, /** @type {any} */ w) => (other && textOf(v) !== textOf(w) ? html`<${Marked} text=${textOf(v)} other=${textOf(w)} kind=${kind} />` : html`<${Raw} value=${v} />`);
  return html`<div class=${`call ${c.error ? "error" : ""}`}><p>${other === null ? html`<mark class=${kind === "+" ? "added" : "removed"}><b>${plain(c.name, 100)}</b></mark>` : html`<b>${plain(c.name, 100)}</b>`} ${c.millis !== undefined ? duration(c.millis) : ""}</p>
    ${part(c.args, other?.args)}
    ${c.result !== undefined && html`<p class="faint">Result</p>${part(c.result, other?.result)}`}</div>`;
}
