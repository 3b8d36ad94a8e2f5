// A run, live while it goes on.
import { html, useCallback, useEffect, useMemo, useRef, useState } from "../app/html.js";
import { Problem, ask, follow, make, may, send } from "../app/api.js";
import { useLoad, visible } from "../app/load.js";
import { place, tenant, to } from "../app/route.js";
import { Act, Command, Copy, Dialog, Empty, Facts, Failure, Field, Loaded, Page, RunLink, Skeleton, Status, Tabs, Time, Typed, now } from "../app/ui.js";
import { bytes, cost, count, duration, json, plain, shell, things } from "../app/format.js";
import { emptyRun, fold } from "../app/fold.js";
import { Rows } from "../app/rows.js";
import { Markdown, Raw } from "../app/text.js";
import { Timeline } from "./timeline.js";
import { Diff } from "../app/diff.js";
import { Decide, forAPerson } from "./decide.js";
import { AsCase } from "./case.js";
import { Checked, useReplay } from "./check.js";
import { Fork } from "./fork.js";

/** @typedef {`/v1/tasks/${string}`} RunPath */
/** An entry of the log of a run. @typedef {{seq: number, head: {kinds: string[], time: string}, records: {data?: {task?: any}}[]}} Entry */

// A run that has ended, or waits, is shown at once when its events up to then have come, so that nothing moves under the pointer; one of many
// events as soon as these have come, and any once nothing has come for a while.
const manyEvents = 500;
const longEnough = 3000; // milliseconds

const tabs = /** @type {[string, string][]} */ ([["", "Conversation"], ["timeline", "Timeline"], ["plan", "Plan"], ["children", "Children"], ["files", "Files"], ["log", "Records"], ["logs", "Logs"], ["raw", "Raw"]]);

/** @param {{id: string}} props */
export function View({ id }) {
  const at = place.value.params.get("tab") ?? "";
  const { run, state, error, retry } = useRun(id);
  const path = /** @type {const} */ (`/v1/tasks/${encodeURIComponent(id)}`);
  const [open, setOpen] = useState(/** @type {"" | "steer" | "fork" | "feedback" | "copy" | "case"} */ (""));
  const replay = useReplay(path);
  const drawn = useRef(false);
  const { known, asked, over, early, late, ready } = useCaughtUp(id, run);
  const waits = early ? asked === "waiting" : Boolean(run.waiting);
  const why = useLoad(async (signal) => (waits ? ask(`${path}/why`, { signal }) : undefined), [id, waits], { every: 10_000 });
  if (error && run.events === 0) return html`<${Page} title="Run"><${Failure} error=${error} retry=${() => { retry(); known.reload(); }} /><//>`;
  const ended = Boolean(run.finished) || over;
  const name = `Run ${plain(id, 64)}`;
  const title = html`Run <span class="id">${plain(id, 64)}</span>`;
  const untold = waits && !why.data && !why.error;
  if (run.events === 0 || (!drawn.current && (!ready || (untold && !late)))) return html`<${Page} name=${name} title=${title} lead=${html`<${Status} of=${asked || "loading"} />`}><${Skeleton} rows=${8} /><//>`;
  drawn.current = true;
  const actions = html`
    ${!ended && html`<${Act} needs="submit" class="danger" act=${() => ask(`${path}/cancel`, { method: "POST", body: { reason: "from the console" } })} done="It will be cancelled">Cancel<//>`}
    ${!ended && html`<button disabled=${!may("submit")} onClick=${() => setOpen("steer")}>Send a message</button>`}
    <button disabled=${!may("submit")} onClick=${() => setOpen("fork")}>Fork</button>
    <button disabled=${!may("submit")} onClick=${() => setOpen("feedback")}>Rate</button>
    ${run.steps.length > 0 && html`<button aria-busy=${Boolean(replay.state.loading)} onClick=${replay.check}>Check by replay</button>`}
    <button onClick=${() => setOpen("copy")}>Copy as command</button>
    <button onClick=${() => setOpen("case")}>Add to a suite</button>`;
  return html`<${Page} name=${name} title=${title} lead=${html`<${Status} of=${run.status} /> ${run.agent && html`by <a href=${to(`/agents/${encodeURIComponent(run.agent)}`)}>${plain(run.agent, 64)}</a>`} ${run.forkedFrom && html`forked from <${RunLink} id=${run.forkedFrom.run} /> at step ${run.forkedFrom.step}: <a href=${to(`/compare/${encodeURIComponent(run.forkedFrom.run)}/${encodeURIComponent(id)}`)}>compare</a>`} ${state === "waiting" && !ended && html`<span class="bad">The connection was lost; reconnecting …</span>`}`} actions=${actions}>
    ${error && html`<${Failure} error=${error} retry=${retry} />`}
    <${Summary} run=${run} />
    <${Checked} of=${replay.state} again=${replay.check} close=${replay.close} />
    ${run.waiting && html`${why.error && html`<${Failure} error=${why.error} retry=${why.reload} />`}<${Waiting} id=${id} run=${run} why=${why.data?.text} />`}
    <${Tabs} label="Parts of the run" tabs=${tabs.filter(([t]) => (t !== "plan" || run.plan) && (t !== "children" || run.children.length))} at=${at} href=${(/** @type {string} */ t) => to(`/runs/${encodeURIComponent(id)}`, { tab: t })} />
    <${Tab} at=${at} id=${id} run=${run} path=${path} />
    ${open === "steer" && html`<${Steer} path=${path} close=${() => setOpen("")} />`}
    ${open === "fork" && html`<${Fork} id=${id} path=${path} run=${run} close=${() => setOpen("")} />`}
    ${open === "feedback" && html`<${Feedback} path=${path} close=${() => setOpen("")} />`}
    ${open === "case" && html`<${AsCase} run=${run} close=${() => setOpen("")} />`}
    ${open === "copy" && html`<${AsCommand} id=${id} path=${path} close=${() => setOpen("")} />`}
  <//>`;
}

/** A run, folded from its events as they come. The events of one moment are shown together. @param {string} id */
export function useRun(id) {
  const kept = useRef({ run: emptyRun(), after: "" });
  const [run, draw] = useState(kept.current.run); // a copy each time: parts whose properties are the same are not drawn again
  const [state, setState] = useState("open");
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const [turn, setTurn] = useState(0);
  const shown = visible.value;
  useEffect(() => { kept.current = { run: emptyRun(), after: "" }; draw(kept.current.run); setError(undefined); }, [id]);
  useEffect(() => {
    if (!shown || kept.current.run.finished) return;
    setError(undefined);
    const stop = new AbortController();
    let due = 0;
    follow(`/v1/tasks/${encodeURIComponent(id)}/events`, {
      query: { deltas: true }, signal: stop.signal, after: kept.current.after,
      onState: (now, why) => { setState(now); setError(kept.current.run.events === 0 ? why : undefined); },
      onFrame: (frame) => {
        if (frame.id) kept.current.after = frame.id;
        fold(kept.current.run, frame);
        due ||= requestAnimationFrame(() => { due = 0; draw({ ...kept.current.run }); });
      },
    }).catch((err) => setError(err));
    return () => {
      stop.abort();
      cancelAnimationFrame(due);
      if (due) draw({ ...kept.current.run }); // a hidden page has no frames, and what has come does not come again
    };
  }, [id, shown, turn]);
  return { run, state, error, retry: useCallback(() => setTurn((n) => n + 1), []) };
}

/**
 * Whether of a run has come what there was when it was opened: drawn before, it would move under the pointer.
 * @param {string} id
 * @param {import("../app/fold.js").Run} run as it has come up to now
 */
export function useCaughtUp(id, run) {
  const [late, setLate] = useState(false);
  const known = useLoad((signal) => ask(/** @type {const} */ (`/v1/tasks/${encodeURIComponent(id)}`), { signal }), [id]);
  useEffect(() => { const t = setTimeout(() => setLate(true), longEnough); return () => clearTimeout(t); }, [run.events, known.settled]);
  const asked = known.data?.status ?? "";
  const over = ["completed", "failed", "cancelled"].includes(asked);
  const early = !run.finished && (over || (asked === "waiting" && !run.moves.some((m) => m.kind === "wait")));
  return { known, asked, over, early, late, ready: run.events > 0 && known.settled && (late || !early || run.events >= manyEvents) };
}

/** @param {{run: import("../app/fold.js").Run}} props */
function Summary({ run }) {
  const took = run.started ? (run.finished ? Date.parse(run.finished) : now.value) - Date.parse(run.started) : undefined;
  const tokens = run.usage?.total ?? run.steps.reduce((n, s) => n + (s.usage?.total ?? 0), 0);
  const spent = run.cost ?? run.steps.reduce((n, s) => n + (s.cost ?? 0), 0);
  const session = run.session ?? run.result?.sessionId;
  const r = run.result; // what is not known yet has its place, so that what is below stays where it is
  return html`<${Facts} of=${[
    ["Queued", html`<${Time} at=${run.queued} />`],
    ["Duration", took === undefined ? "–" : duration(Math.max(0, took))],
    ["Steps", run.steps.length ? count(run.steps.length) : "–"],
    ["Tokens", tokens ? count(tokens) : "–"],
    ["Cost", cost(spent)],
    ["Session", session && session !== r?.id ? html`<a href=${to(`/sessions/${encodeURIComponent(session)}`)}>${plain(session, 64)}</a>` : ""],
    ["Revision", run.revision ? String(run.revision) : "–"],
    ["Error", r?.error ? html`<span class="bad"><code>${plain(r.error.code, 40)}</code> ${plain(r.error.message, 600)}</span>` : "", "wide"],
  ]} />`;
}

/** @param {{id: string, run: import("../app/fold.js").Run, why?: string}} props */
function Waiting({ id, run, why }) {
  const w = run.waiting;
  const call = callOf(run, w.callId);
  const told = w.reason === "approval" && call ? html`<b>The call of ${plain(call.name, 100)} waits for approval</b>, since <${Time} at=${w.at} />.${w.until ? html` Without a decision it is denied <${Time} at=${w.until} />.` : ""}`
    : w.reason === "answer" ? html`<b>The agent waits for an answer</b>, since <${Time} at=${w.at} />.${w.until ? html` It stops waiting <${Time} at=${w.until} />.` : ""}`
    : html`<b>${plain(why ?? `It waits: ${w.reason}.`)}</b> Since <${Time} at=${w.at} />.`;
  return html`<div class="card waits"><p>${told}</p>
    ${forAPerson(w.reason) && html`<${Decide} key=${`${w.reason} ${w.callId ?? w.at}`} id=${id} waiting=${w} call=${call} />`}</div>`;
}

/** @param {import("../app/fold.js").Run} run @param {string} id */
const callOf = (run, id) => run.steps.flatMap((s) => s.calls).find((c) => c.id === id);

/** @param {{at: string, id: string, run: import("../app/fold.js").Run, path: RunPath}} props */
function Tab({ at, id, run, path }) {
  switch (at) {
    case "timeline": return html`<${Timeline} id=${id} run=${run} />`;
    case "plan": return html`<${Plan} plan=${run.plan} run=${run} />`;
    case "children": return html`<${Children} run=${run} />`;
    case "files": return html`<${Files} path=${path} run=${run} />`;
    case "log": return html`<${Records} path=${path} />`;
    case "logs": return html`<${Logs} path=${path} />`;
    case "raw": return html`<${RawRun} path=${path} />`;
    default: return html`<${Conversation} run=${run} />`;
  }
}

/** @typedef {import("../app/fold.js").Step} Step */

const manySteps = 20;

/** @param {{run: import("../app/fold.js").Run}} props */
function Conversation({ run }) {
  return html`<div class="conversation">
    <section class="turn person"><header><b>Task</b></header><div class="card"><${Markdown} text=${typeof run.input === "string" ? run.input : JSON.stringify(run.input)} /></div></section>
    ${run.steps.length > manySteps && html`<p><button onClick=${() => scrollTo(0, document.documentElement.scrollHeight)}>To the newest of ${count(run.steps.length)} steps</button></p>`}
    <${Rows} of=${run.steps} keyOf=${(/** @type {Step} */ s) => s.id} usual=${150} row=${(/** @type {Step} */ s) => html`<${Turn} s=${s} version=${version(s)} />`} />
    ${run.result && html`<section class="turn"><header><b>Result</b> <${Status} of=${run.status} /></header>
      ${run.result.error && html`<div class="failure"><p>${plain(run.result.error.message, 4000)}</p></div>`}
      ${resultOf(run)}
      ${run.result.files?.list?.length > 0 && html`<div class="card row">${run.result.files.list.map((/** @type {API["SavedFile"]} */ f) => html`<span key=${f.name} class="id">${plain(f.name, 200)}</span> `)}</div>`}</section>`}
    ${!run.finished && run.steps.length > 0 && !run.waiting && html`<p class="faint" role="status">It is running …</p>`}
  </div>`;
}

/** What a run returned; the text of its last step is not shown twice. @param {import("../app/fold.js").Run} run */
function resultOf(run) {
  const { result, error } = run.result;
  const last = run.steps.at(-1);
  if (error || result === undefined || result === null || result === "") return "";
  if (typeof result !== "string") return html`<div class="card"><${Raw} value=${result} /></div>`;
  return last && last.text.trim() === result.trim() ? html`<p class="faint">It is the text of step ${last.n}.</p>` : html`<div class="card"><${Markdown} text=${result} /></div>`;
}

// A step is drawn again only when it has changed.
const version = (/** @type {import("../app/fold.js").Step} */ s) => `${s.text.length} ${s.reasoning.length} ${s.ended} ${s.calls.map((c) => `${c.ended}${c.output?.length}${c.approval?.decision}`)} ${s.errors.length} ${s.notes.length}`;

/** @param {{s: import("../app/fold.js").Step, version: string}} props */
function Turn({ s, version: v }) {
  return useMemo(() => html`<section class="turn" id=${s.id} tabindex="-1">
    <header><b>Step ${s.n}</b>${s.model && html`<span>${plain(`${s.provider}/${s.model}`, 100)}</span>`}${s.millis !== undefined && html`<span>${duration(s.millis)}</span>`}
      ${s.usage && html`<span>${things(s.usage.total, "token")}</span>`}${s.cost ? html`<span>${cost(s.cost)}</span>` : ""}${s.cached && html`<span>from the reply cache</span>`}
      ${s.status && s.status !== "completed" && html`<${Status} of=${s.status} />`}${s.reason && html`<span>${plain(s.reason, 400)}</span>`}</header>
    ${s.errors.map((e) => html`<div class="failure"><p>${plain(e.message, 2000)}</p></div>`)}
    ${s.reasoning && html`<details><summary>Reasoning</summary><pre class="text">${plain(s.reasoning, 20_000)}</pre></details>`}
    ${s.text && html`<div class=${`card ${s.writing ? "cursor" : ""}`}><${Markdown} text=${s.text} /></div>`}
    ${s.calls.map((c) => html`<${Call} key=${c.id} c=${c} />`)}
    ${s.notes.map((n) => html`<p class="faint"><b>${plain(n.name.replaceAll("_", " "), 60)}</b> ${plain(n.message ?? n.reason ?? n.comment ?? n.rule ?? "", 600)}${n.by ? ` (${plain(n.by, 100)})` : ""}</p>`)}
  </section>`, [v]);
}

/** @param {{c: import("../app/fold.js").Call}} props */
function Call({ c }) {
  const a = c.approval;
  return html`<div class=${`call ${c.error ? "error" : ""}`}><details open=${Boolean(c.error)}>
    <summary><b>${plain(c.name, 100)}</b> <code>${plain(c.args, 140)}</code> ${c.millis !== undefined ? duration(c.millis) : c.started && !c.ended ? "running …" : ""} ${c.error && html`<span class="bad">${plain(c.code || "failed", 40)}</span>`}</summary>
    <p class="faint">Arguments</p><${Raw} value=${c.args} />
    ${(c.result !== undefined || c.output) && html`<p class="faint">${c.result !== undefined ? "Result" : "Output"}</p><${Raw} value=${c.result ?? c.output} />`}
    ${c.meta && html`<p class="faint">Metadata</p><${Raw} value=${c.meta} />`}
    </details>
    ${a && html`<p class="faint">${a.decision ? html`<b>${plain(a.decision, 20)}</b> ${a.changed ? "with other arguments" : ""} ${a.by ? `by ${plain(a.by, 100)}` : ""} ${a.reason ? `: ${plain(a.reason, 400)}` : ""}` : html`Waits for an approval since <${Time} at=${a.at} />`}</p>`}
    ${a?.changed && html`<div class="sides"><div><p class="faint">The agent asked for:</p><${Raw} value=${a.arguments ?? ""} /></div><div><p class="faint">It is called with:</p><${Raw} value=${a.changed} /></div></div>`}
  </div>`;
}

/** @param {{plan: any, run: import("../app/fold.js").Run}} props */
function Plan({ plan, run }) {
  const steps = plan?.steps ?? [];
  const done = new Map(run.steps.map((s) => [s.id, s]));
  return html`<p>${plain(plan?.reason ?? "", 600)}</p><ol class="stack">${steps.map((/** @type {API["PlanStep"]} */ s) => html`<li key=${s.id} class="card"><div class="row"><b>${plain(s.id, 64)}</b> <code>${plain(s.tool, 64)}</code>
    <${Status} of=${done.get(s.id)?.status ?? (done.has(s.id) ? "running" : "queued")} />${s.dependsOn?.length ? html`<span class="faint">after ${s.dependsOn.map((/** @type {string} */ d) => plain(d, 64)).join(", ")}</span>` : ""}</div>
    ${s.description && html`<p>${plain(s.description, 600)}</p>`}${s.args && html`<${Raw} value=${s.args} />`}</li>`)}</ol>`;
}

/** @param {{run: import("../app/fold.js").Run}} props */
const Children = ({ run }) => html`<ul class="stack">${run.children.flatMap((d) => d.children ?? []).map((/** @type {any} */ c) => html`<li key=${c.run} class="card row"><${RunLink} id=${c.run} /> ${plain(c.agent, 64)} <${Status} of=${c.status ?? "running"} /> ${c.cost ? cost(c.cost) : ""} <span class="faint">${plain(c.output ?? c.error ?? "", 200)}</span></li>`)}</ul>`;

/** @param {{path: RunPath, run: import("../app/fold.js").Run}} props */
function Files({ path, run }) {
  const [step, setStep] = useState("");
  const [name, setName] = useState("");
  const list = useLoad((signal) => ask(`${path}/files`, { query: { step, limit: 1000 }, signal }), [path, step, run.finished]);
  const file = (/** @type {string} */ n) => `${path}/file?${new URLSearchParams({ name: n, ...(step ? { step } : {}) })}`;
  return html`<div class="filters"><${Field} label="After step"><${Typed} type="number" min="1" max=${run.steps.at(-1)?.n ?? 1} placeholder="the last" value=${step} onChange=${(/** @type {Edited} */ e) => setStep(e.target.value)} /><//></div>
    <${Loaded} of=${list}>${(/** @type {API["FileList"]} */ l) => (l.files?.length ? html`<div class="scroll"><table><thead><tr><th>Name</th><th class="number">Size</th><th>Type</th><td></td></tr></thead><tbody>
      ${l.files.map((/** @type {API["SavedFile"]} */ f) => html`<tr key=${f.name}><td class="id"><button class="quiet" onClick=${() => setName(f.name)}>${plain(f.name, 400)}</button></td><td class="number">${bytes(f.size)}</td><td>${plain(f.type, 60)}</td><td><a href=${file(f.name)} download>Download</a></td></tr>`)}</tbody></table></div>`
      : html`<${Empty} title="No files">The run has not written any.<//>`)}<//>
    ${name && html`<${FileText} path=${path} name=${name} step=${step} steps=${run.steps.map((s) => s.n)} close=${() => setName("")} />`}`;
}

const mostShown = 256 << 10;

/** @param {{path: RunPath, name: string, step: string, steps: number[], close: () => void}} props */
function FileText({ path, name, step, steps, close }) {
  const last = step ? Number(step) : steps[steps.length - 1];
  const read = async (/** @type {string} */ s, /** @type {AbortSignal} */ signal) => {
    const response = await send(`${path}/file`, { query: { name, step: s }, headers: { Range: `bytes=0-${mostShown - 1}` }, signal });
    const buffer = new Uint8Array(await response.arrayBuffer());
    return buffer.includes(0) ? null : new TextDecoder().decode(buffer);
  };
  const text = useLoad(async (signal) => ({ text: await read(step, signal), before: await (last > 1 ? read(String(last - 1), signal).catch((e) => (e instanceof Problem && e.status === 404 ? "" : Promise.reject(e))) : Promise.resolve("")) }), [path, name, step]);
  return html`<${Dialog} wide title=${plain(name, 200)} onClose=${close}><${Loaded} of=${text}>${(/** @type {{text: string | null, before: string | null}} */ t) => (t.text === null ? html`<p>This is not text. Download it to look at it.</p>` : html`<${Diff} before=${t.before ?? ""} after=${t.text} />`)}<//><//>`;
}

/** @param {{path: RunPath}} props */
function Records({ path }) {
  const [after, setAfter] = useState("");
  const log = useLoad((signal) => ask(`${path}/log`, { query: { after, limit: 50 }, signal }), [path, after]);
  return html`<${Loaded} of=${log}>${(/** @type {API["LogPage"]} */ l) => html`<div class="stack">${/** @type {Entry[]} */ (l.entries ?? []).map((e) => html`<details class="card" key=${e.seq}><summary><b>${e.seq}</b> ${e.head.kinds.map((/** @type {string} */ k) => html`<code>${k}</code> `)} <${Time} at=${e.head.time} /></summary><${Raw} value=${e} /></details>`)}
    <p class="row">${after && html`<button onClick=${() => setAfter("")}>First</button>`}${l.more && l.entries?.length ? html`<button onClick=${() => setAfter(String(l.entries?.at(-1)?.seq ?? ""))}>More</button>` : ""}</p></div>`}<//>`;
}

/** @param {{path: RunPath}} props */
function Logs({ path }) {
  const logs = useLoad((signal) => ask(`${path}/logs`, { query: { limit: 500 }, signal }), [path], { every: 5000 });
  return html`<${Loaded} of=${logs}>${(/** @type {API["LogEntryList"]} */ l) => (l.entries?.length ? html`<div class="scroll"><table><tbody>${l.entries.map((/** @type {API["StoredLogEntry"]} */ e) => html`<tr key=${e.seq}><td><${Time} at=${e.timestamp} /></td><td><${Status} of=${e.level} /></td><td>${plain(e.component, 40)}</td><td>${plain(e.message, 1000)} <span class="faint">${plain(e.data ?? "", 600)}</span></td></tr>`)}</tbody></table></div>` : html`<${Empty} title="No process has logged anything about this run" />`)}<//>`;
}

/** @param {{path: RunPath}} props */
function RawRun({ path }) {
  const all = useLoad((signal) => ask(path, { signal }), [path]);
  return html`<${Loaded} of=${all}>${(/** @type {API["TaskState"]} */ r) => html`<div class="card"><${Copy} text=${JSON.stringify(r, null, 2)} label="Copy JSON" /><${Raw} value=${r} /></div>`}<//>`;
}

/** @param {{path: RunPath, close: () => void}} props */
function Steer({ path, close }) {
  const [text, setText] = useState("");
  return html`<${Dialog} title="Send a message to the run" onClose=${close}><p class="faint">The model reads it before its next call.</p>
    <textarea autofocus aria-label="Message" value=${text} onInput=${(/** @type {Edited} */ e) => setText(e.target.value)}></textarea>
    <div class="actions"><${Act} class="main" needs="submit" disabled=${!text.trim()} done="Sent" act=${() => make(`${path}/steer`, { message: text })} then=${close}>Send<//></div><//>`;
}

/** @param {{path: RunPath, close: () => void}} props */
function Feedback({ path, close }) {
  const [comment, setComment] = useState("");
  const rate = (/** @type {number} */ score) => () => make(`${path}/feedback`, { score, ...(comment ? { comment } : {}) });
  return html`<${Dialog} title="Rate this run" onClose=${close}><${Field} label="Comment"><textarea value=${comment} onInput=${(/** @type {Edited} */ e) => setComment(e.target.value)}></textarea><//>
    <div class="actions"><${Act} needs="submit" act=${rate(1)} then=${close} done="Thank you">Good<//><${Act} needs="submit" act=${rate(-1)} then=${close} done="Thank you">Bad<//></div><//>`;
}

// The fields of a task that the command tells.
const told = ["input", "agent", "priority", "session", "context", "labels", "workspace"];

/** @param {any} input */
const textOf = (input) => (typeof input === "string" ? input : (input ?? []).map((/** @type {any} */ p) => p.text).join(""));

/** @param {any} task @param {(v: any) => string} quoted */
function flagsOf(task, quoted) {
  const flags = [["agent", task.agent], ["priority", task.priority === "normal" ? "" : task.priority], ["session", task.session], ["named-workspace", task.workspace], ["context", task.context],
    ...Object.entries(task.labels ?? {}).map(([k, v]) => ["label", `${k}=${v}`])];
  return flags.filter(([, v]) => v).map(([name, v]) => `--${name} ${quoted(v)} `).join("");
}

/** @param {{id: string, path: RunPath, close: () => void}} props */
function AsCommand({ id, path, close }) {
  const log = useLoad((signal) => ask(`${path}/log`, { query: { limit: 1 }, signal }), [path]);
  return html`<${Dialog} wide title="Copy as a command" onClose=${close}><${Loaded} of=${log}>${(/** @type {API["LogPage"]} */ l) => {
    const task = { ...(/** @type {Entry[]} */ (l.entries ?? [])[0]?.records[0]?.data?.task ?? {}) };
    for (const own of ["id", "tenant", "by", "traceparent", "parent"]) delete task[own];
    const quoted = (/** @type {any} */ v) => shell(typeof v === "string" ? v : json(v));
    return html`<div class="stack"><${Command} text=${`longshore submit ${flagsOf(task, quoted)}${quoted(textOf(task.input))}`} />
      ${Object.keys(task).some((k) => !told.includes(k)) && html`<p class="faint">The command leaves out ${Object.keys(task).filter((k) => !told.includes(k)).join(", ")}; this request includes everything:</p>`}
      <${Command} text=${`curl -s ${location.origin}/v1/tasks -H 'Content-Type: application/json' -d ${quoted(task)}`} />
      <p class="faint">Check whether the program on your machine would decide as the run did, without calling a model or a tool:</p>
      <${Command} text=${`longshore replay ${id} --check${tenant.value ? ` --tenant ${tenant.value}` : ""}`} /></div>`;
  }}<//><//>`;
}
