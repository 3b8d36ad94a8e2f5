// What is waiting in the queue, and why.
import { html } from "../app/html.js";
import { ask, may } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { to } from "../app/route.js";
import { Empty, Failure, Loaded, Page, RunLink, Table, Time } from "../app/ui.js";
import { count, plain } from "../app/format.js";

export function View() {
  const lanes = useLoad(async (signal) => (may("read-fleet") ? ask("/v1/lanes", { signal }) : { lanes: [] }), [], { every: 3000 }); // they are those of all tenants
  const runs = useLoad((signal) => ask("/v1/tasks", { query: { status: "queued", limit: 20 }, signal }), [], { every: 5000 });
  return html`<${Page} title="Lanes" lead="What is waiting in the queue, by tenant and priority">
    <${Loaded} of=${lanes}>${(/** @type {API["LaneList"]} */ l) => (!l.lanes?.length ? !runs.data?.runs?.length && html`<${Empty} title="The queue is empty">Every task has been taken by a worker.<//>` : html`<${Table} label="Lanes" rows=${l.lanes} keyOf=${(/** @type {API["LaneStatus"]} */ x) => `${x.tenant} ${x.priority}`} columns=${[
      { name: "Tenant", cell: (/** @type {API["LaneStatus"]} */ x) => plain(x.tenant, 64) },
      { name: "Priority", cell: (/** @type {API["LaneStatus"]} */ x) => x.priority },
      { name: "Queued", class: "number", cell: (/** @type {API["LaneStatus"]} */ x) => count(x.queued) },
      { name: "With workers", class: "number", cell: (/** @type {API["LaneStatus"]} */ x) => count(x.inFlight) },
      { name: "Oldest", cell: (/** @type {API["LaneStatus"]} */ x) => html`<${Time} at=${x.oldest} />` },
    ]} />`)}<//>
    ${runs.error && html`<h2>Why they wait</h2><${Failure} error=${runs.error} retry=${runs.reload} />`}
    ${!runs.error && runs.data?.runs?.length ? html`<h2>Why they wait</h2><ul class="stack">${runs.data.runs.map((/** @type {API["RunSummary"]} */ r) => html`<${Why} key=${r.id} id=${r.id} />`)}</ul><p><a href=${to("/runs", { status: "queued" })}>All queued runs</a></p>` : ""}
  <//>`;
}

/** @param {{id: string}} props */
function Why({ id }) {
  const why = useLoad((signal) => ask(`/v1/tasks/${encodeURIComponent(id)}/why`, { signal }), [id], { every: 10_000 });
  return html`<li class="card"><${RunLink} id=${id} /> ${plain(why.data?.text ?? why.error?.message ?? "…", 600)}</li>`;
}
