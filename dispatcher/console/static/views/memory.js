// Long-term memory: collections, their items, where each came from; search and remove.
import { html, useEffect, useState } from "../app/html.js";
import { ask } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { place, refine, to } from "../app/route.js";
import { Act, Dialog, Empty, Facts, Field, Loaded, Page, RunLink, Table, Time, Typed } from "../app/ui.js";
import { bytes, count, plain, things } from "../app/format.js";
import { Markdown, Raw } from "../app/text.js";

/** @param {{id: string}} props */
export function View({ id }) {
  return id ? html`<${Items} name=${id} />` : html`<${List} />`;
}

function List() {
  const list = useLoad((signal) => ask("/v1/memory", { signal }), []);
  const address = (/** @type {any} */ c) => to(`/memory/${encodeURIComponent(c.name)}`);
  return html`<${Page} title="Memory" lead="What agents keep beyond their runs and can find again.">
    <${Loaded} of=${list}>${(/** @type {any} */ l) => (l.collections.length === 0 ? html`<${Empty} title="Nothing is remembered yet" command='longshore memory put notes berth-4 "Berth 4 takes ships of up to 180 m"'>Agents with tools for memory write here. Or store something yourself:<//>` : html`
      <p class="faint">${things(l.items, "item")}, ${bytes(l.bytes)}</p>
      <${Table} label="Collections" rows=${l.collections} keyOf=${(/** @type {any} */ c) => c.name} href=${address} columns=${[
        { name: "Collection", cell: (/** @type {any} */ c) => html`<a href=${address(c)}>${plain(c.name, 64)}</a>` },
        { name: "Items", class: "number", cell: (/** @type {any} */ c) => count(c.items) },
        { name: "Size", class: "number", cell: (/** @type {any} */ c) => bytes(c.bytes ?? 0) },
      ]} />${l.more && html`<p class="faint">There are more.</p>`}`)}<//><//>`;
}

const items = (/** @type {number} */ n) => (n === 1 ? "1 item" : `${count(n)} items`);

const names = ["agent", "session", "subject", "tag"];

/** @param {{name: string}} props */
function Items({ name }) {
  const params = place.value.params;
  const path = `/v1/memory/${encodeURIComponent(name)}`;
  const query = Object.fromEntries(names.map((n) => [n, params.get(n) ?? ""]));
  const q = params.get("q") ?? "", after = params.get("after") ?? "";
  const found = useLoad((signal) => (q
    ? ask(`${path}/search`, { query: { ...query, q, topK: 50 }, signal }).then((f) => ({ items: f.hits, degraded: f.degraded }))
    : ask(`${path}/items`, { query: { ...query, after, limit: 100 }, signal })), [path, params.toString()]);
  const [open, setOpen] = useState("");
  const [chosen, setChosen] = useState(/** @type {string[]} */ ([]));
  const [asked, setAsked] = useState(false);
  useEffect(() => setChosen([]), [params.toString()]);
  const change = (/** @type {string} */ n) => (/** @type {any} */ e) => refine({ [n]: e.target.value.trim(), after: "" });
  const remove = async () => {
    await ask(`${path}/items`, { method: "DELETE", query: { id: chosen } });
    found.reload();
  };
  const removed = () => { setChosen([]); setAsked(false); };
  return html`<${Page} title=${`Memory ${plain(name, 64)}`} lead="Newest first; a search lists the best matches first." actions=${html`<a class="button" href=${to("/memory")}>All collections</a>`}>
    <search class="filters"><${Field} label="Search" wide><${Typed} type="search" data-search value=${q} placeholder="words, or a question" onChange=${change("q")} /><//>
      <${Field} label="Agent"><${Typed} value=${query.agent} spellcheck=${false} onChange=${change("agent")} /><//>
      <${Field} label="About"><${Typed} value=${query.subject} spellcheck=${false} onChange=${change("subject")} /><//>
      <${Field} label="Tag"><${Typed} value=${query.tag} spellcheck=${false} onChange=${change("tag")} /><//></search>
    ${chosen.length > 0 && html`<div class="row chosen"><b>${count(chosen.length)} chosen</b><button class="danger" onClick=${() => setAsked(true)}>Remove ${count(chosen.length)}</button><button class="quiet" onClick=${() => setChosen([])}>Choose none</button></div>`}
    <${Loaded} of=${found}>${(/** @type {any} */ l) => (l.items.length === 0 ? html`<${Empty} title=${q || names.some((n) => query[n]) ? "Nothing matches" : "This collection is empty"} />` : html`
      ${l.degraded && html`<p class="faint">${plain(l.degraded, 400)}</p>`}
      <${Table} label="Items" rows=${l.items} keyOf=${(/** @type {any} */ i) => i.id} columns=${[
        { name: "", cell: (/** @type {any} */ i) => html`<input type="checkbox" aria-label=${`Choose item ${i.id}`} checked=${chosen.includes(i.id)} onChange=${() => setChosen(chosen.includes(i.id) ? chosen.filter((x) => x !== i.id) : [...chosen, i.id])} />` },
        { name: "Item", cell: (/** @type {any} */ i) => html`<button class="quiet id" onClick=${() => setOpen(i.id)}>${plain(i.id, 64)}</button>` },
        { name: "Text", class: "text", cell: (/** @type {any} */ i) => plain(i.text ?? i.fields ?? "", 200) },
        { name: "About", cell: (/** @type {any} */ i) => plain(i.subject, 100) },
        { name: "Tags", cell: (/** @type {any} */ i) => (i.tags ?? []).map((/** @type {string} */ t) => plain(t, 64)).join(", ") },
        { name: "From", cell: (/** @type {any} */ i) => html`<${Origin} source=${i.source} agent=${i.agent} />` },
        { name: "When", cell: (/** @type {any} */ i) => html`<${Time} at=${i.created} />` },
      ]} />${l.next && html`<p><button onClick=${() => refine({ after: l.next }, { replace: false })}>Older</button></p>`}`)}<//>
    ${open && html`<${Item} path=${path} id=${open} close=${() => setOpen("")} />`}
    ${asked && html`<${Dialog} title="Remove items" onClose=${() => setAsked(false)}><p>${items(chosen.length)} will be removed from ${plain(name, 64)}, permanently.</p>
      <div class="actions"><button onClick=${() => setAsked(false)}>Back</button><${Act} class="danger" needs="submit" done="Removed" act=${remove} then=${removed}>Remove ${items(chosen.length)}<//></div><//>`}
  <//>`;
}

/** Where an item came from. @param {{source?: any, agent?: string}} props */
function Origin({ source, agent }) {
  if (source?.run) return html`<${RunLink} id=${source.run} />${source.step ? html`, step ${source.step}` : ""}`;
  if (source?.document) return html`${plain(source.document, 200)}${source.part ? html`, part ${source.part + 1}` : ""}`;
  return plain(agent, 64);
}

/** @param {{path: string, id: string, close: () => void}} props */
function Item({ path, id, close }) {
  const item = useLoad((signal) => ask(`${path}/items/${encodeURIComponent(id)}`, { signal }), [path, id]);
  return html`<${Dialog} wide title=${`Item ${plain(id, 64)}`} onClose=${close}><${Loaded} of=${item}>${(/** @type {any} */ i) => html`<div class="stack">
    <${Facts} of=${[["About", plain(i.subject, 200)], ["Agent", plain(i.agent, 64)], ["Session", plain(i.session, 64)], ["From", i.source && html`<${Origin} source=${i.source} />`], ["Stored", i.created && html`<${Time} at=${i.created} />`], ["Expires", i.expires && html`<${Time} at=${i.expires} />`], ["Vector by", plain(i.model, 100)]]} />
    ${i.text && html`<div class="card"><${Markdown} text=${i.text} /></div>`}${i.fields && html`<${Raw} value=${i.fields} />`}</div>`}<//><//>`;
}
