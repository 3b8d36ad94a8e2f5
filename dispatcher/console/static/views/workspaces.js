// Named workspaces.
import { html } from "../app/html.js";
import { ask } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { Act, Empty, Loaded, Page, RunLink, Table, Time } from "../app/ui.js";
import { bytes, count, plain } from "../app/format.js";

export function View() {
  const list = useLoad((signal) => ask("/v1/workspaces", { signal }), [], { every: 5000 });
  return html`<${Page} title="Workspaces" lead="Folders that runs share, one run at a time">
    <${Loaded} of=${list}>${(/** @type {any} */ l) => (l.workspaces.length === 0 ? html`<${Empty} title="No named workspaces" command='longshore submit --named-workspace site "Build the site"'>A task that names one works on its files:<//>` : html`<${Table} label="Workspaces" rows=${l.workspaces} keyOf=${(/** @type {any} */ w) => w.name} columns=${[
      { name: "Workspace", cell: (/** @type {any} */ w) => html`<b>${plain(w.name, 64)}</b>` },
      { name: "Files", class: "number", cell: (/** @type {any} */ w) => count(w.files) },
      { name: "Size", class: "number", cell: (/** @type {any} */ w) => bytes(w.bytes) },
      { name: "With", cell: (/** @type {any} */ w) => (w.holder ? html`<${RunLink} id=${w.holder} />` : "no run") },
      { name: "Waiting", class: "number", cell: (/** @type {any} */ w) => count((w.waiting ?? []).length) },
      { name: "Last changed by", cell: (/** @type {any} */ w) => w.run && html`<${RunLink} id=${w.run} tab="files" /> <${Time} at=${w.updated} />` },
      { name: "", cell: (/** @type {any} */ w) => html`<${Act} class="danger" needs="submit" disabled=${Boolean(w.holder)} done="Its files are removed" act=${async () => { if (confirm(`Remove all files of ${w.name}?`)) { await ask(`/v1/workspaces/${encodeURIComponent(w.name)}`, { method: "DELETE" }); list.reload(); } }}>Remove<//>` },
    ]} />`)}<//><//>`;
}
