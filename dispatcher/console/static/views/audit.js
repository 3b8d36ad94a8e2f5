// Who did what: the events that belong to no run.
import { html, useState } from "../app/html.js";
import { ask } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { Command, Empty, Loaded, Page, Table, Time } from "../app/ui.js";
import { plain } from "../app/format.js";

/** @typedef {{seq: number, time: string, event: {type: string, data: Record<string, any>}}} Told */

export function View() {
  const [after, setAfter] = useState("");
  const list = useLoad((signal) => ask("/v1/events", { query: { run: "_", after, limit: 100 }, signal }), [after]);
  return html`<${Page} title="Audit" lead="Who changed what, and whose requests were denied">
    <${Loaded} of=${list}>${(/** @type {API["EventPage"]} */ l) => { const rows = /** @type {Told[]} */ (l.events ?? []); return rows.length === 0 ? html`<${Empty} title="Nothing was changed yet" />` : html`<${Table} label="Audit" rows=${rows} keyOf=${(/** @type {Told} */ e) => String(e.seq)} columns=${[
      { name: "When", cell: (/** @type {Told} */ e) => html`<${Time} at=${e.time} />` },
      { name: "What", cell: (/** @type {Told} */ e) => plain(e.event.data.action ?? e.event.type.replace(/^longshore\.|\.v\d+$/g, ""), 100) },
      { name: "Of what", cell: (/** @type {Told} */ e) => plain(e.event.data.target ?? e.event.data.name ?? e.event.data.run ?? e.event.data.operation ?? "", 200) },
      { name: "By", cell: (/** @type {Told} */ e) => plain(e.event.data.who ?? e.event.data.by ?? "", 200) },
      { name: "Outcome", cell: (/** @type {Told} */ e) => plain(e.event.data.outcome ?? e.event.data.code ?? "", 100) },
    ]} />${l.more ? html`<p><button onClick=${() => setAfter(String(l.next))}>More</button></p>` : ""}`; }}<//>
    ${list.settled && html`<h2>Verify the chains</h2><${Command} text="longshore audit verify" />`}
  <//>`;
}
