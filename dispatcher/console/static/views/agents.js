// Agents: their definitions, revisions, and the runs that use them.
import { html, useEffect, useMemo, useState } from "../app/html.js";
import { ask } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { to } from "../app/route.js";
import { Act, Empty, Facts, Field, Loaded, Page, Table, Time, say } from "../app/ui.js";
import { plain } from "../app/format.js";
import { Raw } from "../app/text.js";

/** @param {{id: string}} props */
export function View({ id }) {
  return id ? html`<${Agent} name=${id} />` : html`<${List} />`;
}

function List() {
  const list = useLoad((signal) => ask("/v1/agents", { signal }), []);
  return html`<${Page} title="Agents"><${Loaded} of=${list}>${(/** @type {any} */ l) => (l.agents.length === 0 ? html`<${Empty} title="No agents" command="longshore agents apply agent.yaml" />` : html`<${Table} label="Agents" rows=${l.agents} keyOf=${(/** @type {any} */ a) => a.name} href=${(/** @type {any} */ a) => to(`/agents/${encodeURIComponent(a.name)}`)} columns=${[
    { name: "Agent", cell: (/** @type {any} */ a) => html`<a href=${to(`/agents/${encodeURIComponent(a.name)}`)}>${plain(a.name, 64)}</a>` },
    { name: "Revision", class: "number", cell: (/** @type {any} */ a) => a.revision },
    { name: "What it does", class: "text", cell: (/** @type {any} */ a) => plain(a.description, 200) },
    { name: "Model", cell: (/** @type {any} */ a) => plain(a.model ?? a.models?.join(", ") ?? "", 100) },
    { name: "Tools", class: "number", cell: (/** @type {any} */ a) => html`<span title=${(a.tools ?? []).join(", ")}>${(a.tools ?? []).length}</span>` },
  ]} />`)}<//><//>`;
}

/** @param {{name: string}} props */
function Agent({ name }) {
  const path = `/v1/agents/${encodeURIComponent(name)}`;
  const agent = useLoad((signal) => ask(path, { signal }), [name]);
  const history = useLoad((signal) => ask(`${path}/revisions`, { signal }), [name]);
  const [text, setText] = useState(/** @type {string | null} */ (null));
  const [old, setOld] = useState(0);
  const stored = useMemo(() => (agent.data ? editable(agent.data) : ""), [agent.data]);
  useEffect(() => setText(null), [stored]);
  const invalid = text === null ? "" : problemOf(text);
  return html`<${Page} title=${`Agent ${plain(name, 64)}`} lead=${plain(agent.data?.description, 400)} actions=${html`<a class="button" href=${to("/runs", { agent: name })}>Its runs</a><a class="button" href=${to("/try", { agent: name })}>Try it</a>`}>
    <${Loaded} of=${agent}>${(/** @type {any} */ a) => html`<${Facts} of=${[["Revision", a.revision], ["Planner", a.planner], ["Steps at most", a.maxSteps], ["Model", plain(a.model ?? a.models?.join(", ") ?? "the worker's", 200)]]} />
      <${Field} label="Definition" error=${invalid} hint="Stored, it is a new revision; runs that have begun go on with theirs."><textarea rows="22" spellcheck=${false} value=${text ?? stored} onInput=${(/** @type {any} */ e) => setText(e.target.value)}></textarea><//>
      <div class="actions"><button disabled=${text === null} onClick=${() => setText(null)}>Undo</button><${Act} class="main" needs="author" disabled=${text === null || text === stored || Boolean(invalid)} act=${async () => {
        const done = await ask(path, { method: "PUT", query: { ifRevision: a.revision }, body: JSON.parse(/** @type {string} */ (text)) });
        say(done.changed ? `Stored as revision ${done.revision}` : "It was the same");
        agent.reload();
        history.reload();
      }}>Store<//></div>`}<//>
    <h2>Revisions</h2>
    <${Loaded} of=${history} rows=${2}>${(/** @type {any} */ h) => html`<${Table} label="Revisions" rows=${h.changes} keyOf=${(/** @type {any} */ c) => String(c.revision)} columns=${[
      { name: "Revision", cell: (/** @type {any} */ c) => html`<button class="quiet" onClick=${() => setOld(old === c.revision ? 0 : c.revision)}>${c.revision}</button>` },
      { name: "When", cell: (/** @type {any} */ c) => html`<${Time} at=${c.at} />` },
      { name: "By", cell: (/** @type {any} */ c) => plain(c.by, 100) },
      { name: "", cell: (/** @type {any} */ c) => (c.deleted ? "removed" : "") },
    ]} />`}<//>
    ${old > 0 && html`<${Revision} path=${path} revision=${old} now=${stored} />`}
  <//>`;
}

/** A definition as it is edited: without what the dispatcher adds. @param {any} a */
function editable(a) {
  const copy = { ...a };
  delete copy.revision;
  return JSON.stringify(copy, null, 2);
}

/** @param {string} text */
function problemOf(text) {
  try { JSON.parse(text); return ""; } catch (err) { return `This is not JSON: ${/** @type {Error} */ (err).message}`; }
}

/** @param {{path: string, revision: number, now: string}} props */
function Revision({ path, revision, now }) {
  const one = useLoad((signal) => ask(`${path}/revisions/${revision}`, { signal }), [path, revision]);
  return html`<${Loaded} of=${one}>${(/** @type {any} */ r) => { const was = r.agent ? editable(r.agent) : ""; return html`<h3>Revision ${revision}${was === now ? " is what is stored now" : ", and what is stored now"}</h3><div class="sides"><div class="card"><${Raw} value=${was} /></div>${was !== now && html`<div class="card"><${Raw} value=${now} /></div>`}</div>`; }}<//>`;
}
