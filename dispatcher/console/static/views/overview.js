// What the fleet does now, and what waits for somebody.
import { html, useMemo } from "../app/html.js";
import { ask, may } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { place, to } from "../app/route.js";
import { Chart } from "../app/chart.js";
import { Empty, Failure, Loaded, Page, RunLink, Skeleton, Status, Table, Tabs, Time } from "../app/ui.js";
import { Providers, Spend } from "./providers.js";
import { cost, count, duration, plain } from "../app/format.js";

const spans = /** @type {Record<string, {name: string, lead: string, since: string, ms: number, by: string, step: number}>} since: as the list of runs has it */ ({
  "1h": { name: "1 h", lead: "The last hour", since: "1", ms: 3_600_000, by: "minute", step: 60 },
  "": { name: "24 h", lead: "The last 24 hours", since: "", ms: 86_400_000, by: "hour", step: 3600 },
  "7d": { name: "7 d", lead: "The last 7 days", since: "168", ms: 7 * 86_400_000, by: "hour", step: 3600 },
});

export function View() {
  const chosen = place.value.params.get("span") ?? "";
  const span = Object.hasOwn(spans, chosen) ? spans[chosen] : spans[""];
  const stats = useLoad((signal) => ask("/v1/stats", { query: { since: new Date(Date.now() - span.ms).toISOString() }, signal }), [span], { every: 5000 });
  const over = useLoad((signal) => ask("/v1/stats", { query: { since: new Date(Date.now() - span.ms).toISOString(), by: span.by }, signal }), [span], { every: 15_000 });
  const workers = useLoad(async (signal) => (may("read-fleet") ? ask("/v1/workers", { signal }) : { workers: [] }), [], { every: 5000 });
  const lanes = useLoad(async (signal) => (may("read-fleet") ? ask("/v1/lanes", { signal }) : { lanes: [] }), [], { every: 5000 });
  const waits = useLoad((signal) => ask("/v1/approvals", { query: { limit: 5 }, signal }), [], { every: 5000 });
  const runs = useLoad((signal) => ask("/v1/tasks", { query: { limit: 8 }, signal }), [], { every: 3000 });
  const dead = useLoad((signal) => ask("/v1/dead-letters", { query: { limit: 1 }, signal }), [], { every: 15_000 });
  const t = stats.data?.total;
  const ws = workers.data?.workers ?? [];
  const queued = (lanes.data?.lanes ?? []).reduce((/** @type {number} */ n, /** @type {API["LaneStatus"]} */ l) => n + (l.queued), 0);
  const ready = [stats, over, workers, runs].every((l) => l.settled); // what comes one by one would move what is below it
  const failed = [stats, over, workers, lanes, waits, dead].filter((l) => l.error); // the newest runs tell of theirs themselves
  return html`<${Page} title="Overview" lead=${span.lead}>
    <${Tabs} label="Span" at=${chosen} tabs=${Object.entries(spans).map(([id, x]) => [id, x.name])} href=${(/** @type {string} */ id) => to("/", { span: id })} />
    ${failed[0]?.error && html`<${Failure} error=${failed[0].error} retry=${() => failed.forEach((l) => l.reload())} />`}
    <section class="cards" aria-label="Figures">
      <${Figure} title="Runs" value=${t && count(t.runs)} href=${to("/runs", { since: span.since })}>${t?.runs ? `${Math.round((t.successRate ?? 0) * 100)}% completed` : ""}${stats.data?.behind ? `${t?.runs ? "; " : ""}the index is ${count(stats.data.behind)} events behind` : ""}<//>
      <${Figure} title="Failed" value=${t && count(t.statuses?.failed ?? 0)} href=${to("/runs", { status: "failed", since: span.since })} />
      <${Figure} title="Spent" value=${t && (cost(t.cost) || "unknown")}>${t?.tokens ? `${count(t.tokens)} tokens` : ""}<//>
      <${Figure} title="Median duration" value=${t && (t.runs ? duration(t.p50Ms ?? 0) : "–")}>${t?.runs ? `95th percentile: ${duration(t.p95Ms ?? 0)}` : ""}<//>
      ${may("read-fleet") && html`<${Figure} title="Queued" value=${lanes.data && count(queued)} href=${to("/lanes")} />`}
      ${may("read-fleet") && html`<${Figure} title="Workers" href=${to("/workers")} value=${workers.data && count(ws.length)}>${ws.length ? `${count(ws.reduce((/** @type {number} */ n, /** @type {API["WorkerStatus"]} */ w) => n + w.busy, 0))} of ${count(ws.reduce((/** @type {number} */ n, /** @type {API["WorkerStatus"]} */ w) => n + w.slots, 0))} slots busy` : workers.data ? "No worker answers: start one with longshore worker" : ""}<//>`}
      <${Figure} title="Waiting for approval" href=${to("/inbox")} value=${waits.data && count(waits.data.approvals?.length ?? 0)}>${waits.data?.more ? "and more" : ""}<//>
      <${Figure} title="Dead letters" href=${to("/dead-letters")} value=${dead.data && (dead.data.letters?.length ? "some" : "none")} />
    </section>
    ${ready && over.data && Boolean(t?.runs) && html`<${Charts} groups=${over.data.groups ?? []} span=${span} />`}
    ${ready && may("read-fleet") && html`<${Providers} workers=${ws} />`}
    ${ready ? html`<h2>Newest runs</h2>
    <${Loaded} of=${runs} rows=${6}>${(/** @type {API["RunList"]} */ list) => (!list.runs?.length ? html`<${Empty} title="Nothing has run yet" command='longshore submit "Write a haiku into haiku.txt"'><a class="button main" href=${to("/try")}>Try an agent here</a> or submit a task from a terminal:<//>`
      : html`<${Table} label="Newest runs" rows=${list.runs} keyOf=${(/** @type {API["RunSummary"]} */ r) => r.id} href=${(/** @type {API["RunSummary"]} */ r) => to(`/runs/${encodeURIComponent(r.id)}`)} columns=${[
          { name: "Run", cell: (/** @type {API["RunSummary"]} */ r) => html`<${RunLink} id=${r.id} />` },
          { name: "Status", cell: (/** @type {API["RunSummary"]} */ r) => html`<${Status} of=${r.status} />` },
          { name: "Agent", cell: (/** @type {API["RunSummary"]} */ r) => plain(r.agent, 64) },
          { name: "Task", class: "text", cell: (/** @type {API["RunSummary"]} */ r) => plain(r.input, 160) },
          { name: "Queued", cell: (/** @type {API["RunSummary"]} */ r) => html`<${Time} at=${r.queuedAt} />` },
        ]} />`)}<//>` : html`<${Skeleton} rows=${8} />`}
    ${ready && may("read-fleet") && html`<${Spend} />`}
  <//>`;
}

/** @param {{title: string, value?: any, href?: string, children?: any}} props */
const Figure = ({ title, value, href, children }) => html`<div class="card"><p>${href ? html`<a href=${href}>${title}</a>` : title}</p><p class="value">${value ?? html`<span class="faint">…</span>`}</p><p class="faint">${children}</p></div>`;

/** @param {{groups: API["RunGroup"][], span: {ms: number, step: number}}} props */
function Charts({ groups, span }) {
  const data = useMemo(() => {
    const known = new Map(groups.map((g) => [Date.parse(g.key ?? "") / 1000, g]));
    const end = Math.floor(Date.now() / 1000 / span.step) * span.step;
    const times = Array.from({ length: Math.ceil(span.ms / 1000 / span.step) }, (_, i) => end - (Math.ceil(span.ms / 1000 / span.step) - 1 - i) * span.step);
    const of = (/** @type {(g: API["RunGroup"]) => number | undefined} */ f) => times.map((t) => { const g = known.get(t); return (g && f(g)) || null; }); // nothing is drawn where nothing ran
    return { times, runs: of((g) => g.runs), failed: of((g) => g.statuses?.failed ?? 0), cost: of((g) => g.cost), p95: of((g) => (g.p95Ms ?? 0) / 1000) };
  }, [groups, span]);
  const series = useMemo(() => ({
    runs: [{ name: "runs", values: data.runs, color: "accent", bars: true }, { name: "failed", values: data.failed, color: "bad", bars: true }],
    cost: [{ name: "US dollars", values: data.cost, color: "good", bars: true }],
    time: [{ name: "95th percentile", values: data.p95, color: "wait" }],
  }), [data]);
  return html`<section class="charts" aria-label="Over time">
    <${Chart} label="Runs" times=${data.times} series=${series.runs} form=${count} />
    <${Chart} label="Cost" times=${data.times} series=${series.cost} form=${(/** @type {number} */ n) => cost(n)} />
    <${Chart} label="Duration" times=${data.times} series=${series.time} form=${(/** @type {number} */ n) => duration(n * 1000)} /></section>`;
}
