// Agents: their definitions, revisions, and the runs that use them.
import { html, useEffect, useState } from "../app/html.js";
import { ask } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { to } from "../app/route.js";
import { Act, Empty, Facts, Loaded, Page, Table, Time } from "../app/ui.js";
import { plain } from "../app/format.js";
import { useAgentCheck, written } from "../app/draft.js";
import { Editor } from "../app/editor.js";
import { Raw } from "../app/text.js";

/** @param {{id: string}} props */
export function View({ id }) {
  return id ? html`<${Agent} name=${id} />` : html`<${List} />`;
}

function List() {
  const list = useLoad((signal) => ask("/v1/agents", { signal }), []);
  return html`<${Page} title="Agents" lead="Agents work on tasks. Open one to read or change it; longshore agents apply -f FILE adds others."><${Loaded} of=${list}>${(/** @type {API["AgentList"]} */ l) => (!l.agents?.length ? html`<${Empty} title="No agents" command="longshore agents apply agent.yaml" />` : html`<${Table} label="Agents" rows=${l.agents} keyOf=${(/** @type {API["Definition"]} */ a) => a.name} href=${(/** @type {API["Definition"]} */ a) => to(`/agents/${encodeURIComponent(a.name)}`)} columns=${[
    { name: "Agent", cell: (/** @type {API["Definition"]} */ a) => html`<a href=${to(`/agents/${encodeURIComponent(a.name)}`)}>${plain(a.name, 64)}</a>` },
    { name: "Revision", class: "number", cell: (/** @type {API["Definition"]} */ a) => a.revision },
    { name: "What it does", class: "text", cell: (/** @type {API["Definition"]} */ a) => plain(a.description, 200) },
    { name: "Model", cell: (/** @type {API["Definition"]} */ a) => plain(a.model ?? a.models?.join(", ") ?? "the worker's", 100) },
    { name: "Tools", class: "number", cell: (/** @type {API["Definition"]} */ a) => html`<span title=${(a.tools ?? []).join(", ")}>${(a.tools ?? []).length}</span>` },
  ]} />`)}<//><//>`;
}

/** @param {{name: string}} props */
function Agent({ name }) {
  const path = /** @type {const} */ (`/v1/agents/${encodeURIComponent(name)}`);
  const agent = useLoad(async (signal) => { const a = await ask(path, { signal }); return { ...a, text: await written(a, signal) }; }, [name]);
  const history = useLoad((signal) => ask(`${path}/revisions`, { signal }), [name]);
  const [text, setText] = useState(/** @type {string | null} */ (null));
  const [old, setOld] = useState(0);
  const stored = agent.data?.text ?? "";
  useEffect(() => setText(null), [stored]);
  const check = useAgentCheck(name, text);
  return html`<${Page} title=${`Agent ${plain(name, 64)}`} lead=${plain(agent.data?.description, 400)} actions=${html`<a class="button" href=${to("/runs", { agent: name })}>Its runs</a><a class="button" href=${to("/try", { agent: name })}>Try it</a>`}>
    <${Loaded} of=${agent}>${(/** @type {API["Definition"]} */ a) => html`<${Facts} of=${[["Revision", a.revision], ["Planner", a.planner], ["Maximum steps", a.maxSteps], ["Model", plain(a.model ?? a.models?.join(", ") ?? "the worker's", 200)]]} />
      <${Editor} label="Definition" rows=${22} text=${text ?? stored} problems=${check.problems} checking=${check.checking} change=${setText} hint="YAML or JSON, as in the agents folder. Storing makes a new revision for new runs; runs that have started keep theirs. Comments are not stored." />
      <div class="actions"><button disabled=${text === null} onClick=${() => setText(null)}>Undo</button><${Act} class="main" needs="author" disabled=${text === stored || !check.fine?.agent} act=${async () => {
        const done = await ask(path, { method: "PUT", query: { ifRevision: a.revision }, body: check.fine?.agent });
        agent.reload();
        history.reload();
        return done;
      }} done=${(/** @type {API["AgentApplied"]} */ a) => (a.changed ? `Stored as revision ${a.revision}` : "Nothing has changed")}>Store<//></div>`}<//>
    ${agent.settled && html`<h2>Revisions</h2>
    <${Loaded} of=${history} rows=${2}>${(/** @type {API["History"]} */ h) => html`<${Table} label="Revisions" rows=${h.changes} keyOf=${(/** @type {API["Change"]} */ c) => String(c.revision)} columns=${[
      { name: "Revision", cell: (/** @type {API["Change"]} */ c) => html`<button class="quiet" onClick=${() => setOld(old === c.revision ? 0 : c.revision)}>${c.revision}</button>` },
      { name: "When", cell: (/** @type {API["Change"]} */ c) => html`<${Time} at=${c.at} />` },
      { name: "By", cell: (/** @type {API["Change"]} */ c) => plain(c.by, 100) },
      { name: "", cell: (/** @type {API["Change"]} */ c) => (c.deleted ? "removed" : "") },
    ]} />`}<//>`}
    ${old > 0 && html`<${Revision} path=${path} revision=${old} now=${stored} />`}
  <//>`;
}

/** @param {{path: string, revision: number, now: string}} props */
function Revision({ path, revision, now }) {
  const one = useLoad(async (signal) => { const r = await ask(`${path}/revisions/${revision}`, { signal }); return r.agent ? written(r.agent, signal) : ""; }, [path, revision]);
  return html`<${Loaded} of=${one}>${(/** @type {string} */ was) => { return html`<h3>Revision ${revision}${was === now ? " is the current one" : ", and the current one"}</h3><div class="sides"><div class="card"><${Raw} value=${was} /></div>${was !== now && html`<div class="card"><${Raw} value=${now} /></div>`}</div>`; }}<//>`;
}
