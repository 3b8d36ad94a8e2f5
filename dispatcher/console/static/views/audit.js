// Who did what: the events that belong to no run.
import { html, useState } from "../app/html.js";
import { ask } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { Command, Empty, Loaded, Page, Table, Time } from "../app/ui.js";
import { plain } from "../app/format.js";

export function View() {
  const [after, setAfter] = useState("");
  const list = useLoad((signal) => ask("/v1/events", { query: { run: "_", after, limit: 100 }, signal }), [after]);
  return html`<${Page} title="Audit" lead="Who changed what, and whose requests were denied">
    <${Loaded} of=${list}>${(/** @type {any} */ l) => { const rows = l.events ?? []; return rows.length === 0 ? html`<${Empty} title="Nothing was changed yet" />` : html`<${Table} label="Audit" rows=${rows} keyOf=${(/** @type {any} */ e) => e.id} columns=${[
      { name: "When", cell: (/** @type {any} */ e) => html`<${Time} at=${e.time} />` },
      { name: "What", cell: (/** @type {any} */ e) => plain(e.data.action ?? e.type.replace(/^longshore\.|\.v\d+$/g, ""), 100) },
      { name: "Of what", cell: (/** @type {any} */ e) => plain(e.data.target ?? e.data.name ?? e.data.run ?? e.data.operation ?? "", 200) },
      { name: "By", cell: (/** @type {any} */ e) => plain(e.data.who ?? e.data.by ?? "", 200) },
      { name: "Outcome", cell: (/** @type {any} */ e) => plain(e.data.outcome ?? e.data.code ?? "", 100) },
    ]} />${l.next ? html`<p><button onClick=${() => setAfter(String(l.next))}>More</button></p>` : ""}`; }}<//>
    <h2>Verify the chains</h2><${Command} text="longshore audit verify" />
  <//>`;
}
