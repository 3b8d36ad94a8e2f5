// The workers that answer.
import { html, useState } from "../app/html.js";
import { ask } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { Act, Dialog, Empty, Loaded, Page, Table, Time } from "../app/ui.js";
import { count, plain, things } from "../app/format.js";

export function View() {
  const list = useLoad((signal) => ask("/v1/workers", { signal }), [], { every: 3000 });
  const [drain, setDrain] = useState(/** @type {API["WorkerStatus"] | null} */ (null));
  return html`<${Page} title="Workers">
    <${Loaded} of=${list}>${(/** @type {API["WorkerList"]} */ l) => (!l.workers?.length ? html`<${Empty} title="No worker answers" command="longshore worker">Tasks stay in the queue until one is started:<//>` : html`<${Table} label="Workers" rows=${l.workers} keyOf=${(/** @type {API["WorkerStatus"]} */ w) => w.id} columns=${[
      { name: "Worker", cell: (/** @type {API["WorkerStatus"]} */ w) => html`<b>${plain(w.name, 64)}</b>${w.gone ? " (does not answer)" : w.draining ? " (drains)" : ""}` },
      { name: "Host", cell: (/** @type {API["WorkerStatus"]} */ w) => plain(w.host, 64) },
      { name: "Version", cell: (/** @type {API["WorkerStatus"]} */ w) => plain(w.version, 40) },
      { name: "Busy", class: "number", cell: (/** @type {API["WorkerStatus"]} */ w) => `${count(w.busy)} of ${count(w.slots)}` },
      { name: "Labels", cell: (/** @type {API["WorkerStatus"]} */ w) => Object.entries(w.labels ?? {}).map(([k, v]) => plain(`${k}=${v}`, 80)).join(", ") },
      { name: "Tools", class: "text", cell: (/** @type {API["WorkerStatus"]} */ w) => html`<span title=${(w.tools ?? []).join(", ")}>${count((w.tools ?? []).length)}</span>` },
      { name: "Since", cell: (/** @type {API["WorkerStatus"]} */ w) => html`<${Time} at=${w.since} />` },
      { name: "", cell: (/** @type {API["WorkerStatus"]} */ w) => html`<button disabled=${w.draining || w.gone} onClick=${() => setDrain(w)}>Drain</button>` },
    ]} />`)}<//>
    ${drain && html`<${Dialog} title="Drain a worker" onClose=${() => setDrain(null)}><p>${plain(drain.name, 64)} takes no more tasks, hands back ${things(drain.busy, "run")}, and ends.</p>
      <div class="actions"><button onClick=${() => setDrain(null)}>Back</button><${Act} class="danger" needs="operate-fleet" done="It drains" act=${async () => { await ask(`/v1/workers/${encodeURIComponent(drain.id)}/drain`, { method: "POST" }); list.reload(); }} then=${() => setDrain(null)}>Drain<//></div><//>`}
  <//>`;
}
