// How the models of providers do, as workers tell it, and what was spent today of what quotas grant.
import { html } from "../app/html.js";
import { ask } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { to } from "../app/route.js";
import { Failure, Loaded, Table, Time, now } from "../app/ui.js";
import { cost, count, duration, plain } from "../app/format.js";

/** The models of all workers together. @param {any[]} workers */
function together(workers) {
  const found = new Map();
  for (const w of workers) for (const m of w.models ?? []) {
    const key = `${m.provider}/${m.model ?? ""}`;
    const t = found.get(key) ?? { ...m, key, workers: 0, open: 0, answered: 0, failed: 0, p50Ms: 0, p95Ms: 0, until: undefined, last: undefined };
    found.set(key, t);
    t.workers++;
    if (m.circuit !== "closed") { t.open++; t.until = [t.until, m.until].filter(Boolean).sort().pop(); }
    t.last = m.last ?? t.last;
    t.answered += m.answered;
    t.failed += m.failed;
    t.p50Ms = Math.max(t.p50Ms, m.p50Ms ?? 0);
    t.p95Ms = Math.max(t.p95Ms, m.p95Ms ?? 0);
  }
  return [...found.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** @param {any} m @param {any[]} pauses */
function state(m, pauses) {
  const paused = pauses.find((p) => p.kind === "provider" && p.name === m.provider);
  if (paused) return html`<span class="status wait" title=${plain(paused.reason, 200)}>paused</span>`;
  if (!m.open) return m.last ? html`<span class="status wait">last call failed</span> <code>${plain(m.last, 40)}</code>` : m.answered ? html`<span class="status good">healthy</span>` : html`<span class="status">not called yet</span>`;
  return html`<span class="status bad">${m.open === m.workers ? "circuit open" : `circuit open on ${m.open} of ${m.workers} workers`}</span> <code>${plain(m.last ?? "", 40)}</code>${!m.until ? "" : Date.parse(m.until) > now.value ? html`, retried <${Time} at=${m.until} />` : ", retried with the next call"}`;
}

const limits = /** @type {[string, string][]} */ ([["requestsPerMinute", "requests a minute"], ["tokensPerMinute", "tokens a minute"], ["inFlight", "at once"]]);

/** @param {{workers: any[]}} props what GET /v1/workers lists */
export function Providers({ workers }) {
  const pauses = useLoad((signal) => ask("/v1/pauses", { signal }), [], { every: 15_000 });
  const models = together(workers);
  if (!models.length) return null;
  return html`<h2>Providers</h2>${pauses.error && html`<${Failure} error=${pauses.error} retry=${pauses.reload} />`}<${Table} label="Providers" rows=${models} keyOf=${(/** @type {any} */ m) => m.key} columns=${[
    { name: "Model", cell: (/** @type {any} */ m) => html`<b>${plain(m.provider, 64)}</b>${m.model ? `/${plain(m.model, 100)}` : ""}` },
    { name: "State", cell: (/** @type {any} */ m) => state(m, pauses.data?.pauses ?? []) },
    { name: "Answered", class: "number", cell: (/** @type {any} */ m) => count(m.answered) },
    { name: "Failed", class: "number", cell: (/** @type {any} */ m) => (m.failed ? html`<span class="bad">${count(m.failed)}</span>` : "0") },
    { name: "Median", class: "number", cell: (/** @type {any} */ m) => (m.answered ? duration(m.p50Ms) : "") },
    { name: "95th percentile", class: "number", cell: (/** @type {any} */ m) => (m.answered ? duration(m.p95Ms) : "") },
    { name: "Limits", cell: (/** @type {any} */ m) => limits.filter(([f]) => m[f]).map(([f, n]) => `${count(m[f])} ${n}`).join(", ") },
  ]} />`;
}

const mostQuotas = 50;

/** Quotas of money, and what is spent of them today. */
export function Spend() {
  const quotas = useLoad(async (signal) => {
    const list = ((await ask("/v1/quotas", { signal })).quotas ?? []).filter((/** @type {any} */ q) => q.quota.costPerDay || q.quota.costPerMonth).slice(0, mostQuotas);
    return Promise.all(list.map((/** @type {any} */ q) => ask(`/v1/quotas/${q.kind}/${encodeURIComponent(q.name)}`, { signal }))); // a list has no usage
  }, [], { every: 15_000 });
  return html`<${Loaded} of=${quotas} rows=${1}>${(/** @type {any[]} */ all) => all.length > 0 && html`<h2>Spending against quotas</h2><${Table} label="Spending against quotas" rows=${all} keyOf=${(/** @type {any} */ q) => `${q.kind} ${q.name}`} columns=${[
    { name: "Quota of", cell: (/** @type {any} */ q) => html`<a href=${to("/quotas")}>${plain(q.kind, 20)} <b>${plain(q.name, 64)}</b></a>` },
    { name: "Today", cell: (/** @type {any} */ q) => html`<${Share} spent=${q.usage?.costToday ?? 0} of=${q.quota.costPerDay} />` },
    { name: "This month", cell: (/** @type {any} */ q) => html`<${Share} spent=${q.usage?.costThisMonth ?? 0} of=${q.quota.costPerMonth} />` },
    { name: "Queued", class: "number", cell: (/** @type {any} */ q) => html`${count(q.usage?.queued ?? 0)}${q.quota.maxQueued ? ` of ${count(q.quota.maxQueued)}` : ""}` },
  ]} />`}<//>`;
}

/** @param {{spent: number, of?: number}} props */
const Share = ({ spent, of }) => (of ? html`<progress max=${of} value=${Math.min(spent, of)} aria-label=${`${cost(spent)} of ${cost(of)}`}></progress> <span class=${spent >= of ? "bad" : ""}>${cost(spent)} of ${cost(of)}</span>` : cost(spent));
