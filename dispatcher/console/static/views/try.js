// The inner loop of an agent's author: choose one, change it, give it a task, watch, and again.
import { html, useState } from "../app/html.js";
import { ask, make, may } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { place, refine, to } from "../app/route.js";
import { Act, Field, Loaded, Page } from "../app/ui.js";
import { plain } from "../app/format.js";
import { isDraft, storeDraft, useAgentCheck, written } from "../app/draft.js";
import { Editor } from "../app/editor.js";
import { View as Run } from "./run.js";

export function View() {
  const params = place.value.params;
  const agents = useLoad((signal) => ask("/v1/agents", { signal }), []);
  const [input, setInput] = useState("");
  const [files, setFiles] = useState(/** @type {File[]} */ ([]));
  const [edits, setEdits] = useState(false);
  const [text, setText] = useState(/** @type {string | null} */ (null));
  const run = params.get("run") ?? "";
  const agent = params.get("agent") ?? "default";
  const check = useAgentCheck(agent, text);
  const act = async () => {
    const brought = await Promise.all(files.map(async (f) => ({ path: f.name, data: base64(new Uint8Array(await f.arrayBuffer())) })));
    const worked = text === null ? agent : (await storeDraft(check.fine?.agent)).agent;
    return make("/v1/tasks", { agent: worked, input, labels: { from: "console" }, ...(brought.length ? { files: brought } : {}) });
  };
  const then = (/** @type {API["Submitted"]} */ made) => refine({ run: made.id }, { replace: false });
  const choose = (/** @type {any} */ e) => { refine({ agent: e.target.value }); setEdits(false); setText(null); };
  return html`<${Page} title="Try it" lead="Choose an agent, give it a task, and watch. Then change the agent, and try again.">
    <${Loaded} of=${agents} rows=${2}>${(/** @type {API["AgentList"]} */ l) => html`<form class="card" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
      <div class="filters"><${Field} label="Agent"><select value=${agent} onChange=${choose}>${(l.agents ?? []).filter((/** @type {API["Definition"]} */ a) => !isDraft(a.name) || a.name === agent).map((/** @type {API["Definition"]} */ a) => html`<option key=${a.name}>${a.name}</option>`)}</select><//>
        ${!edits && html`<button type="button" disabled=${!may("author")} title=${may("author") ? "" : "This needs the permission author."} onClick=${() => setEdits(true)}>Change the agent</button>`}<a class="button" href=${to(`/agents/${encodeURIComponent(agent)}`)}>Revisions</a></div>
      ${edits && html`<${Definition} key=${agent} name=${agent} text=${text} check=${check} change=${setText} />`}
      <${Field} label="Task"><textarea name="task" autofocus value=${input} onInput=${(/** @type {Edited} */ e) => setInput(e.target.value)} placeholder="Write a haiku about harbours into haiku.txt"></textarea><//>
      <${Field} label="Files" hint="At most 512 KiB in total. They are in the run's folder before its first step."><input type="file" multiple onChange=${(/** @type {Edited} */ e) => setFiles([...(e.target.files ?? [])])} /><//>
      <div class="actions"><${Act} class="main" needs="submit" disabled=${!input.trim() || (text !== null && !check.fine)} title=${input.trim() ? "" : "Write a task first."} act=${act} then=${then} done=${(/** @type {API["Submitted"]} */ made) => `Submitted as ${made.id}`}>${text === null ? "Run" : "Run the changed agent"}<//></div></form>`}<//>
    ${run && html`<section class="tried"><p><a href=${to(`/runs/${encodeURIComponent(run)}`)}>Open this run on its own page</a></p><${Run} key=${run} id=${run} /></section>`}
  <//>`;
}

/** The definition of an agent, to change; it is tried as a draft, and stored when that is asked for. @param {{name: string, text: string | null, check: ReturnType<typeof useAgentCheck>, change: (text: string | null) => void}} props */
function Definition({ name, text, check, change }) {
  const path = `/v1/agents/${encodeURIComponent(name)}`;
  const agent = useLoad(async (signal) => { const a = await ask(path, { signal }); return { ...a, text: await written(a, signal) }; }, [name]);
  return html`<${Loaded} of=${agent} rows=${4}>${(/** @type {any} */ a) => html`
    <${Editor} label="Definition" name="definition" rows=${14} text=${text ?? a.text} problems=${check.problems} checking=${check.checking} change=${change} hint="YAML or JSON, as in the agents folder. A run of the changed agent uses a draft; the agent itself stays as it is until you save it. Comments are not stored." />
    <div class="actions"><button type="button" disabled=${text === null} onClick=${() => change(null)}>Undo</button><${Act} needs="author" disabled=${!check.fine?.agent} act=${async () => {
      const done = await ask(path, { method: "PUT", query: { ifRevision: a.revision ?? 0 }, body: check.fine?.agent });
      agent.reload();
      return done;
    }} then=${() => change(null)} done=${(/** @type {API["AgentApplied"]} */ a) => (a.changed ? `Saved as revision ${a.revision} of ${plain(name, 64)}` : "Nothing has changed")}>Save as a new revision<//></div>`}<//>`;
}

/** @param {Uint8Array} data */
function base64(data) {
  let text = "";
  for (let i = 0; i < data.length; i += 0x8000) text += String.fromCharCode(...data.subarray(i, i + 0x8000));
  return btoa(text);
}
