// Batches, with their progress.
import { html } from "../app/html.js";
import { ask, make } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { go, to } from "../app/route.js";
import { Act, Command, Empty, Facts, Loaded, Page, Status, Table, Time } from "../app/ui.js";
import { cost, count, plain } from "../app/format.js";

const sentence = (/** @type {string} */ text) => `${text[0]?.toUpperCase() ?? ""}${text.slice(1)}.`;

const ended = (/** @type {API["BatchCounts"]} */ c) => c.completed + c.failed + c.cancelled + c.expired; // refused lines are not in the total

/** @param {{of: API["BatchCounts"]}} props */
const Progress = ({ of }) => html`<progress max=${of.total || 1} value=${ended(of)} aria-label="Progress"></progress> ${count(ended(of))} of ${count(of.total)}`;

/** @param {{id: string}} props */
export function View({ id }) {
  return id ? html`<${Batch} id=${id} />` : html`<${List} />`;
}

function List() {
  const list = useLoad((signal) => ask("/v1/batches", { query: { limit: 100 }, signal }), [], { every: 5000 });
  return html`<${Page} title="Batches">
    <${Loaded} of=${list}>${(/** @type {API["BatchList"]} */ l) => (!l.batches?.length ? html`<${Empty} title="No batches" command="longshore batch submit tasks.jsonl">Submit many tasks at once, a line of JSON each:<//>` : html`<${Table} label="Batches" rows=${l.batches} keyOf=${(/** @type {API["Batch"]} */ b) => b.id} href=${(/** @type {API["Batch"]} */ b) => to(`/batches/${encodeURIComponent(b.id)}`)} columns=${[
      { name: "Batch", cell: (/** @type {API["Batch"]} */ b) => html`<a class="id" href=${to(`/batches/${encodeURIComponent(b.id)}`)}>${plain(b.id, 64)}</a> ${plain(b.name, 100)}` },
      { name: "Status", cell: (/** @type {API["Batch"]} */ b) => html`<${Status} of=${b.status} />` },
      { name: "Progress", cell: (/** @type {API["Batch"]} */ b) => (b.status === "failed" ? "nothing was run" : html`<${Progress} of=${b.counts} />`) },
      { name: "Failed", class: "number", cell: (/** @type {API["Batch"]} */ b) => count(b.counts.failed + b.counts.invalid) },
      { name: "Cost", class: "number", cell: (/** @type {API["Batch"]} */ b) => cost(b.cost) },
      { name: "Created", cell: (/** @type {API["Batch"]} */ b) => html`<${Time} at=${b.createdAt} />` },
    ]} />`)}<//><//>`;
}

/** @param {{id: string}} props */
function Batch({ id }) {
  const path = /** @type {const} */ (`/v1/batches/${encodeURIComponent(id)}`);
  const batch = useLoad((signal) => ask(path, { signal }), [id], { every: 3000 });
  return html`<${Page} title=${`Batch ${plain(id, 64)}`} actions=${batch.data && batch.data.status !== "failed" && (batch.data.endedAt ? html`<${Act} needs="submit" act=${() => make(`${path}/retry`, { failed: true }, "id")} then=${(/** @type {API["Batch"]} */ b) => go(to(`/batches/${encodeURIComponent(b.id)}`))} done="A new batch has the failed lines">Retry the failed lines<//>`
    : html`<${Act} class="danger" needs="submit" done="It will be cancelled" act=${() => ask(`${path}/cancel`, { method: "POST", body: { reason: "from the console" } })}>Cancel<//>`)}>
    <${Loaded} of=${batch}>${(/** @type {API["Batch"]} */ b) => html`${b.status === "failed" ? html`<p><${Status} of=${b.status} /></p><div class="card stack"><p class="bad">${plain(sentence(b.reason ?? "lines are invalid, so nothing was run"), 400)}</p>
        <${Command} text=${`longshore batch submit FILE --id=${b.id}`} />${b.counts.total > 0 && html`<p class="faint">With <code>--skip-invalid</code> the valid lines run.</p>`}</div>` : html`<p><${Status} of=${b.status} /> <${Progress} of=${b.counts} /></p>`}
      <${Facts} of=${[...(b.status === "failed" ? [] : /** @type {[string, any][]} */ ([["Completed", count(b.counts.completed)], ["Failed", count(b.counts.failed)], ["Cancelled", count(b.counts.cancelled)], ["Expired", count(b.counts.expired)]])), ["Invalid", count(b.counts.invalid)], ["Cost", b.status === "failed" ? "" : cost(b.cost)], ["Cost limit", b.maxCost ? cost(b.maxCost) : ""], ["Created", html`<${Time} at=${b.createdAt} />`], ["Ended", b.endedAt && html`<${Time} at=${b.endedAt} />`], ["Waits", plain(b.waits, 200)], ["Reason", b.status === "failed" ? "" : plain(b.reason, 400)]]} />
      ${Boolean(b.errors?.length) && html`<h2>Lines with errors</h2><${Table} label="Lines with errors" rows=${b.errors} keyOf=${(/** @type {API["LineError"]} */ e) => String(e.line)} columns=${[{ name: "Line", class: "number", cell: (/** @type {API["LineError"]} */ e) => count(e.line) }, { name: "Id", cell: (/** @type {API["LineError"]} */ e) => plain(e.custom_id, 64) }, { name: "Error", cell: (/** @type {API["LineError"]} */ e) => html`<code>${plain(e.code, 40)}</code> ${plain(e.field, 100)} ${plain(e.message, 600)}` }]} />`}
      ${b.status !== "failed" && html`<h2>Results</h2><${Command} text=${`longshore batch results ${id}`} />`}`}<//><//>`;
}
