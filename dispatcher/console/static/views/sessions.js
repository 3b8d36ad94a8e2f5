// Sessions: conversations over several runs.
import { html } from "../app/html.js";
import { ask } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { to } from "../app/route.js";
import { Act, Empty, Facts, Loaded, Page, RunLink, Table, Time } from "../app/ui.js";
import { count, plain } from "../app/format.js";
import { Markdown } from "../app/text.js";

/** @param {{id: string}} props */
export function View({ id }) {
  return id ? html`<${Session} name=${id} />` : html`<${List} />`;
}

function List() {
  const list = useLoad((signal) => ask("/v1/sessions", { signal }), [], { every: 5000 });
  return html`<${Page} title="Sessions">
    <${Loaded} of=${list}>${(/** @type {API["SessionList"]} */ l) => (!l.sessions?.length ? html`<${Empty} title="No sessions" command='longshore submit --session s-1 "Hello"'>Runs with the same session are one conversation:<//>` : html`<${Table} label="Sessions" rows=${l.sessions} keyOf=${(/** @type {API["SessionStatus"]} */ s) => s.name} href=${(/** @type {API["SessionStatus"]} */ s) => to(`/sessions/${encodeURIComponent(s.name)}`)} columns=${[
      { name: "Session", cell: (/** @type {API["SessionStatus"]} */ s) => html`<a class="id" href=${to(`/sessions/${encodeURIComponent(s.name)}`)}>${plain(s.name, 64)}</a>` },
      { name: "Runs", class: "number", cell: (/** @type {API["SessionStatus"]} */ s) => count(s.turns) },
      { name: "Waiting", class: "number", cell: (/** @type {API["SessionStatus"]} */ s) => count(s.queue) },
      { name: "Now", cell: (/** @type {API["SessionStatus"]} */ s) => (s.turn ? html`<${RunLink} id=${s.turn} />` : "") },
      { name: "Changed", cell: (/** @type {API["SessionStatus"]} */ s) => html`<${Time} at=${s.updated} />` },
    ]} />`)}<//><//>`;
}

/** @param {{name: string}} props */
function Session({ name }) {
  const path = /** @type {const} */ (`/v1/sessions/${encodeURIComponent(name)}`);
  const session = useLoad((signal) => ask(path, { signal }), [name], { every: 5000 });
  const runs = useLoad((signal) => ask("/v1/tasks", { query: { session: name, limit: 100, since: new Date(Date.now() - 30 * 86_400_000).toISOString() }, signal }), [name], { every: 5000 });
  return html`<${Page} title=${`Session ${plain(name, 64)}`} actions=${html`<${Act} class="danger" needs="submit" done="Forgotten" act=${async () => { await ask(path, { method: "DELETE" }); session.reload(); }}>Forget<//>`}>
    <${Loaded} of=${session} rows=${2}>${(/** @type {API["SessionStatus"]} */ s) => html`<${Facts} of=${[["Runs", count(s.turns)], ["Waiting", count(s.queue)], ["Now", s.turn && html`<${RunLink} id=${s.turn} />`], ["Changed", html`<${Time} at=${s.updated} />`]]} />`}<//>
    ${session.settled && html`<${Loaded} of=${runs}>${(/** @type {API["RunList"]} */ l) => html`<div class="conversation">${[...(l.runs ?? [])].reverse().map((/** @type {API["RunSummary"]} */ r) => html`<section class="turn person" key=${r.id}><header><${RunLink} id=${r.id} /> <${Time} at=${r.queuedAt} /></header><div class="card"><${Markdown} text=${r.input ?? ""} /></div></section>
      ${(r.summary || r.error) && html`<section class="turn" key=${`${r.id} reply`}><div class="card">${r.error ? html`<p class="bad">${plain(r.error, 2000)}</p>` : html`<${Markdown} text=${r.summary} />`}</div></section>`}`)}</div>`}<//>`}<//>`;
}
