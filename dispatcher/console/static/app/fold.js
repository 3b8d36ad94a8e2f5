// A run as it is shown: what its events say, folded into steps.

/**
 * @typedef {{id: string, name: string, args: any, result?: string, error?: boolean, code?: string, started?: string, ended?: string, millis?: number, output?: string, approval?: any, meta?: any, written?: boolean}} Call
 * @typedef {{id: string, n: number, started?: string, ended?: string, status?: string, reason?: string, text: string, reasoning: string, writing: boolean, model?: string, provider?: string, usage?: any, cost?: number, millis?: number, replied?: string, cached?: boolean, calls: Call[], errors: any[], notes: any[], live?: {attempt: number, try: number, n: number}, stop?: string}} Step
 * @typedef {{status: string, agent: string, input: any, session?: string, queued?: string, started?: string, finished?: string, steps: Step[], result?: any, waiting?: any, usage?: any, cost?: number, children: any[], plan?: any, moves: any[], events: number, revision?: number, tools: string[], forkedFrom?: {run: string, step: number}}} Run
 */

/** A run before its first event. @returns {Run} */
export const emptyRun = () => ({ status: "queued", agent: "", input: "", steps: [], children: [], moves: [], events: 0, tools: [] });

const named = /^longshore\.(.+)\.v\d+$/;

/**
 * Takes one event into a run. The run is changed in place.
 * @param {Run} run
 * @param {{event: string, data: any}} frame
 */
export function fold(run, frame) {
  if (frame.event === "delta") return delta(run, frame.data);
  const e = frame.data;
  const name = named.exec(e.type ?? "")?.[1] ?? frame.event;
  const d = e.data ?? {};
  run.events++;
  switch (name) {
    case "run_queued":
      Object.assign(run, { agent: d.agent ?? "", input: d.input, session: d.session, queued: d.queuedAt ?? e.time });
      break;
    case "run_started":
      Object.assign(run, { status: "running", started: e.time, agent: d.agent ?? run.agent, revision: d.revision, tools: d.tools ?? [], forkedFrom: d.forkedFrom });
      break;
    case "run_waiting":
      run.status = "waiting";
      run.waiting = { ...d, at: e.time };
      run.moves.push({ kind: "wait", from: e.time, reason: d.reason ?? "", to: undefined });
      break;
    case "run_resumed":
      if (run.waiting) resume(run, e);
      else run.moves.push({ kind: "takeover", from: e.time, to: e.time, reason: d.reason ?? "" });
      break;
    case "step_start":
      resume(run, e);
      step(run, d).started = e.time;
      break;
    case "step_end":
      Object.assign(step(run, d), { ended: e.time, status: d.status, reason: d.reason });
      break;
    case "message_end": {
      const s = step(run, d);
      Object.assign(s, { text: d.text ?? "", reasoning: d.reasoning ?? "", writing: false, model: d.model, provider: d.provider, usage: d.usage, cost: d.cost, millis: d.millis, replied: e.time, cached: d.cached, stop: d.stop });
      for (const c of d.toolCalls ?? []) call(s, c.id, c.name, c.arguments);
      break;
    }
    case "tool_execution_start":
      Object.assign(call(step(run, d), d.callId, d.toolName, d.arguments), { started: e.time });
      break;
    case "tool_execution_end":
      Object.assign(call(step(run, d), d.callId, d.toolName, d.arguments), { ended: e.time, result: d.result ?? "", error: d.isError, code: d.code, millis: d.millis, meta: d.meta });
      break;
    case "approval_requested":
      call(step(run, d), d.callId, d.toolName, d.arguments).approval = { ...d, at: e.time };
      break;
    case "approval_decided":
      for (const s of run.steps) for (const c of s.calls) if (c.id === d.callId) c.approval = { ...c.approval, ...d, arguments: c.approval?.arguments, changed: d.arguments, decidedAt: e.time };
      break;
    case "error":
      if (d.stepId || run.steps.length) step(run, d).errors.push({ ...d, at: e.time });
      break;
    case "delegated":
      run.children.push({ ...d, at: e.time });
      break;
    case "plan":
      run.plan = d.steps ? d : { ...run.plan, decision: d.decision, reason: d.reason };
      break;
    case "child_ended":
      for (const x of run.children) for (const c of x.children ?? []) if (c.run === d.run) Object.assign(c, d);
      break;
    case "turn_end":
      Object.assign(run, { usage: d.usage, cost: d.cost });
      break;
    case "run_finished":
      resume(run, e);
      Object.assign(run, { status: d.result?.status ?? "completed", finished: e.time, result: d.result, usage: d.result?.tokenUsage ?? run.usage, waiting: undefined });
      for (const s of run.steps) s.writing = false;
      break;
    default:
      if (run.steps.length) run.steps[run.steps.length - 1].notes.push({ name, ...d, at: e.time });
  }
}

function resume(/** @type {Run} */ run, /** @type {any} */ e) {
  const last = run.moves[run.moves.length - 1];
  if (last && last.kind === "wait" && !last.to) last.to = e.time;
  if (run.status === "waiting") run.status = "running";
  run.waiting = undefined;
}

/** The step of an event; the newest if it names none. @returns {Step} */
function step(/** @type {Run} */ run, /** @type {any} */ d) {
  const id = d.stepId ?? run.steps[run.steps.length - 1]?.id ?? "step-1";
  for (let i = run.steps.length - 1; i >= 0; i--) if (run.steps[i].id === id) return run.steps[i];
  const made = { id, n: d.step ?? (Number(/^step-(\d+)$/.exec(id)?.[1]) || run.steps.length + 1), text: "", reasoning: "", writing: false, calls: [], errors: [], notes: [] };
  run.steps.push(made);
  return made;
}

/** @returns {Call} */
function call(/** @type {Step} */ s, /** @type {string} */ id, /** @type {string} */ name, /** @type {any} */ args = undefined) {
  let c = s.calls.find((x) => x.id === id);
  if (!c) s.calls.push((c = { id, name, args }));
  if (args !== undefined) c.args = args;
  return c;
}

/**
 * Text of a reply while it is written, and output of programs. A later attempt begins anew, and an earlier one no longer counts.
 * @param {Run} run
 * @param {any} d
 */
function delta(run, d) {
  const s = step(run, { stepId: `step-${d.step}`, step: d.step });
  if (d.kind === "tool_output") {
    const c = call(s, d.callId, d.toolName);
    c.output = ((c.output ?? "") + d.text).slice(-20_000);
    return;
  }
  if (s.replied || s.ended) return;
  const at = s.live ?? (s.live = { attempt: 0, try: 0, n: 0 });
  if (d.attempt < at.attempt || (d.attempt === at.attempt && (d.try < at.try || d.n <= at.n))) return;
  if (d.attempt > at.attempt || d.try > at.try || d.kind === "reset") Object.assign(s, { text: "", reasoning: "" });
  s.live = { attempt: d.attempt, try: d.try, n: d.n };
  s.writing = true;
  switch (d.kind) {
    case "text": s.text += d.text; break;
    case "reasoning": s.reasoning += d.reasoning ?? d.text; break;
    case "retry": s.errors.push({ message: d.text, retried: true }); break;
    case "tool_call": {
      const c = call(s, d.callId, d.toolName);
      c.args = (c.written ? c.args : "") + d.text;
      c.written = true;
      break;
    }
  }
}
