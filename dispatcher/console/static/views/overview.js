// What the fleet does now, and what waits for somebody.
import { html } from "../app/html.js";
import { ask, may } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { to } from "../app/route.js";
import { Empty, Loaded, Page, RunLink, Status, Table, Time } from "../app/ui.js";
import { cost, count, duration, plain } from "../app/format.js";

export function View() {
  const stats = useLoad((signal) => ask("/v1/stats", { query: { since: new Date(Date.now() - 86_400_000).toISOString() }, signal }), [], { every: 5000 });
  const workers = useLoad(async (signal) => (may("read-fleet") ? ask("/v1/workers", { signal }) : { workers: [] }), [], { every: 5000 });
  const lanes = useLoad((signal) => ask("/v1/lanes", { signal }), [], { every: 5000 });
  const waits = useLoad((signal) => ask("/v1/approvals", { query: { limit: 5 }, signal }), [], { every: 5000 });
  const runs = useLoad((signal) => ask("/v1/tasks", { query: { limit: 8 }, signal }), [], { every: 3000 });
  const dead = useLoad((signal) => ask("/v1/dead-letters", { query: { limit: 1 }, signal }), [], { every: 15_000 });
  const t = stats.data?.total;
  const ws = workers.data?.workers ?? [];
  const queued = (lanes.data?.lanes ?? []).reduce((/** @type {number} */ n, /** @type {any} */ l) => n + (l.queued), 0);
  return html`<${Page} title="Overview" lead="The last 24 hours">
    <section class="cards" aria-label="Figures">
      <${Figure} title="Runs" value=${t && count(t.runs)} href=${to("/runs")}>${t?.runs ? `${Math.round((t.successRate ?? 0) * 100)} % completed` : ""}<//>
      <${Figure} title="Failed" value=${t && count(t.statuses?.failed ?? 0)} href=${to("/runs", { status: "failed" })} />
      <${Figure} title="Spent" value=${t && (cost(t.cost) || "unknown")}>${t?.tokens ? `${count(t.tokens)} tokens` : ""}<//>
      <${Figure} title="Time of a run" value=${t && (t.runs ? duration(t.p50Ms) : "–")}>${t?.runs ? `95 % within ${duration(t.p95Ms)}` : ""}<//>
      <${Figure} title="Waiting in the queue" value=${lanes.data && count(queued)} href=${to("/lanes")} />
      ${may("read-fleet") && html`<${Figure} title="Workers" href=${to("/workers")} value=${workers.data && count(ws.length)}>${ws.length ? `${count(ws.reduce((/** @type {number} */ n, /** @type {any} */ w) => n + w.busy, 0))} of ${count(ws.reduce((/** @type {number} */ n, /** @type {any} */ w) => n + w.slots, 0))} slots are busy` : workers.data ? "No worker answers: start one with longshore worker" : ""}<//>`}
      <${Figure} title="Wait for an approval" href=${to("/inbox")} value=${waits.data && count(waits.data.approvals.length)}>${waits.data?.more ? "and more" : ""}<//>
      <${Figure} title="Dead letters" href=${to("/dead-letters")} value=${dead.data && (dead.data.letters.length ? "some" : "none")} />
    </section>
    <h2>Newest runs</h2>
    <${Loaded} of=${runs} rows=${6}>${(/** @type {any} */ list) => (list.runs.length === 0 ? html`<${Empty} title="Nothing has run yet" command='longshore submit "Write a haiku into haiku.txt"'>Submit a task, and watch it here:<//>`
      : html`<${Table} label="Newest runs" rows=${list.runs} keyOf=${(/** @type {any} */ r) => r.id} href=${(/** @type {any} */ r) => to(`/runs/${encodeURIComponent(r.id)}`)} columns=${[
          { name: "Run", cell: (/** @type {any} */ r) => html`<${RunLink} id=${r.id} />` },
          { name: "Status", cell: (/** @type {any} */ r) => html`<${Status} of=${r.status} />` },
          { name: "Agent", cell: (/** @type {any} */ r) => plain(r.agent, 64) },
          { name: "Task", class: "text", cell: (/** @type {any} */ r) => plain(r.input, 160) },
          { name: "Queued", cell: (/** @type {any} */ r) => html`<${Time} at=${r.queuedAt} />` },
        ]} />`)}<//>
  <//>`;
}

/** @param {{title: string, value?: any, href?: string, children?: any}} props */
const Figure = ({ title, value, href, children }) => html`<div class="card"><p>${href ? html`<a href=${href}>${title}</a>` : title}</p><p class="value">${value ?? html`<span class="faint">…</span>`}</p><p class="faint">${children}</p></div>`;
