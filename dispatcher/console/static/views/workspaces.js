// Named workspaces.
import { html, useState } from "../app/html.js";
import { ask, may } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { Act, Dialog, Empty, Loaded, Page, RunLink, Table, Time } from "../app/ui.js";
import { bytes, count, plain } from "../app/format.js";

export function View() {
  const list = useLoad((signal) => ask("/v1/workspaces", { signal }), [], { every: 5000 });
  const [remove, setRemove] = useState("");
  return html`<${Page} title="Workspaces" lead="Folders that runs share, one run at a time">
    <${Loaded} of=${list}>${(/** @type {API["WorkspaceList"]} */ l) => (!l.workspaces?.length ? html`<${Empty} title="No named workspaces" command='longshore submit --named-workspace site "Build the site"'>A task that names one works on its files:<//>` : html`<${Table} label="Workspaces" rows=${l.workspaces} keyOf=${(/** @type {API["WorkspaceStatus"]} */ w) => w.name} columns=${[
      { name: "Workspace", cell: (/** @type {API["WorkspaceStatus"]} */ w) => html`<b>${plain(w.name, 64)}</b>` },
      { name: "Files", class: "number", cell: (/** @type {API["WorkspaceStatus"]} */ w) => count(w.files) },
      { name: "Size", class: "number", cell: (/** @type {API["WorkspaceStatus"]} */ w) => bytes(w.bytes) },
      { name: "With", cell: (/** @type {API["WorkspaceStatus"]} */ w) => (w.holder ? html`<${RunLink} id=${w.holder} />` : "no run") },
      { name: "Waiting", class: "number", cell: (/** @type {API["WorkspaceStatus"]} */ w) => count((w.waiting ?? []).length) },
      { name: "Last changed by", cell: (/** @type {API["WorkspaceStatus"]} */ w) => w.run && html`<${RunLink} id=${w.run} tab="files" /> <${Time} at=${w.updated} />` },
      { name: "", cell: (/** @type {API["WorkspaceStatus"]} */ w) => html`<button disabled=${Boolean(w.holder) || !may("submit")} onClick=${() => setRemove(w.name)}>Remove</button>` },
    ]} />`)}<//>
    ${remove && html`<${Dialog} title="Remove a workspace" onClose=${() => setRemove("")}><p>All files of ${plain(remove, 64)} will be removed, permanently.</p>
      <div class="actions"><button onClick=${() => setRemove("")}>Back</button><${Act} class="danger" needs="submit" done="Its files are removed" act=${async () => { await ask(`/v1/workspaces/${encodeURIComponent(remove)}`, { method: "DELETE" }); list.reload(); }} then=${() => setRemove("")}>Remove<//></div><//>`}
  <//>`;
}
