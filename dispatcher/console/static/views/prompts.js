// Prompts: their versions, and how they render.
import { html, useState } from "../app/html.js";
import { ask } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { to } from "../app/route.js";
import { Act, Empty, Facts, Field, Loaded, Page, Table, Time } from "../app/ui.js";
import { plain } from "../app/format.js";
import { Editor, useCheck } from "../app/editor.js";

/** @param {{id: string}} props */
export function View({ id }) {
  return id ? html`<${Prompt} id=${id} />` : html`<${List} />`;
}

function List() {
  const list = useLoad((signal) => ask("/v1/prompts", { signal }), []);
  return html`<${Page} title="Prompts"><${Loaded} of=${list}>${(/** @type {API["PromptList"]} */ l) => (!l.prompts?.length ? html`<${Empty} title="No prompts" command="longshore prompts put greeting -f greeting.txt">A prompt is kept apart from the agents that use it:<//>` : html`<${Table} label="Prompts" rows=${l.prompts} keyOf=${(/** @type {API["Prompt"]} */ p) => p.id} href=${(/** @type {API["Prompt"]} */ p) => to(`/prompts/${encodeURIComponent(p.id)}`)} columns=${[
    { name: "Prompt", cell: (/** @type {API["Prompt"]} */ p) => html`<a class="id" href=${to(`/prompts/${encodeURIComponent(p.id)}`)}>${plain(p.id, 100)}</a>` },
    { name: "Name", cell: (/** @type {API["Prompt"]} */ p) => plain(p.name, 100) },
    { name: "Version", class: "number", cell: (/** @type {API["Prompt"]} */ p) => p.version },
    { name: "Tags", cell: (/** @type {API["Prompt"]} */ p) => (p.tags ?? []).map((/** @type {string} */ t) => plain(t, 40)).join(", ") },
    { name: "Changed", cell: (/** @type {API["Prompt"]} */ p) => html`<${Time} at=${p.createdAt} />` },
  ]} />`)}<//><//>`;
}

/** @param {{id: string}} props */
function Prompt({ id }) {
  const path = /** @type {const} */ (`/v1/prompts/${encodeURIComponent(id)}`);
  const [version, setVersion] = useState(0);
  const prompt = useLoad((signal) => ask(path, { query: { version: version || "" }, signal }), [id, version]);
  const history = useLoad((signal) => ask(`${path}/versions`, { signal }), [id]);
  const [text, setText] = useState(/** @type {string | null} */ (null));
  const check = useCheck(text, (written, signal) => ask("/v1/prompts:validate", { method: "POST", body: { ...clean(prompt.data), text: written }, signal }));
  const [vars, setVars] = useState("{}");
  const [shown, setShown] = useState("");
  return html`<${Page} title=${`Prompt ${plain(id, 100)}`}>
    <${Loaded} of=${prompt}>${(/** @type {API["Prompt"]} */ p) => html`<${Facts} of=${[["Version", p.version], ["Engine", p.engine], ["Variables", plain((p.requiredVars ?? []).join(", "))], ["Author", plain(p.author, 100)]]} />
      <${Editor} label="Text" rows=${14} text=${text ?? p.text} problems=${check.problems} checking=${check.checking} change=${setText} />
      <div class="actions"><button disabled=${text === null} onClick=${() => setText(null)}>Undo</button><${Act} class="main" needs="author" disabled=${text === p.text || !check.fine} act=${async () => { const made = await ask(path, { method: "PUT", query: { ifVersion: p.version }, body: { ...clean(p), text } }); prompt.reload(); history.reload(); return made; }} then=${() => { setText(null); setVersion(0); }} done=${(/** @type {API["Prompt"]} */ made) => `Stored as version ${made.version}`}>Store<//></div>
      <h2>Render</h2><${Field} label="Variables, as JSON"><textarea rows="4" spellcheck=${false} value=${vars} onInput=${(/** @type {Edited} */ e) => setVars(e.target.value)}></textarea><//>
      <div class="actions"><${Act} act=${async () => ask(`${path}/render`, { method: "POST", body: { vars: JSON.parse(vars), version: p.version } })} then=${(/** @type {API["PromptRendered"]} */ r) => setShown(r.text)}>Render<//></div>
      ${shown && html`<pre class="text card" tabindex="0">${plain(shown, 100_000)}</pre>`}`}<//>
    ${prompt.settled && html`<h2>Versions</h2>
    <${Loaded} of=${history} rows=${2}>${(/** @type {API["History"]} */ h) => html`<${Table} label="Versions" rows=${h.changes} keyOf=${(/** @type {API["Change"]} */ c) => String(c.revision)} columns=${[
      { name: "Version", cell: (/** @type {API["Change"]} */ c) => html`<button class="quiet" onClick=${() => { setText(null); setVersion(c.revision); }}>${c.revision}</button>` },
      { name: "When", cell: (/** @type {API["Change"]} */ c) => html`<${Time} at=${c.at} />` },
      { name: "By", cell: (/** @type {API["Change"]} */ c) => plain(c.by, 100) },
    ]} />`}<//>`}
  <//>`;
}

/** @param {API["Prompt"] | undefined} p */
function clean(p = { id: "", text: "" }) {
  const { version: _version, createdAt: _createdAt, author: _author, ...rest } = p;
  return rest;
}
