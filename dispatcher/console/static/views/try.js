// The inner loop of an agent's author: choose one, give it a task, watch, and again.
import { html, useState } from "../app/html.js";
import { ask } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { place, refine, to } from "../app/route.js";
import { Act, Field, Loaded, Page, RunLink } from "../app/ui.js";
import { View as Run } from "./run.js";

export function View() {
  const params = place.value.params;
  const agents = useLoad((signal) => ask("/v1/agents", { signal }), []);
  const [input, setInput] = useState("");
  const [files, setFiles] = useState(/** @type {File[]} */ ([]));
  const run = params.get("run") ?? "";
  const agent = params.get("agent") ?? "default";
  const act = async () => {
    const brought = await Promise.all(files.map(async (f) => ({ path: f.name, data: base64(new Uint8Array(await f.arrayBuffer())) })));
    const made = await ask("/v1/tasks", { method: "POST", body: { agent, input, labels: { from: "console" }, ...(brought.length ? { files: brought } : {}) } });
    refine({ run: made.id }, { replace: false });
  };
  return html`<${Page} title="Try it" lead="Choose an agent, give it a task, and watch. Then change the agent, and try again.">
    <${Loaded} of=${agents} rows=${2}>${(/** @type {any} */ l) => html`<form class="card" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
      <div class="filters"><${Field} label="Agent"><select value=${agent} onChange=${(/** @type {any} */ e) => refine({ agent: e.target.value })}>${l.agents.map((/** @type {any} */ a) => html`<option key=${a.name}>${a.name}</option>`)}</select><//><a href=${to(`/agents/${encodeURIComponent(agent)}`)}>Edit the agent</a></div>
      <${Field} label="Task"><textarea autofocus value=${input} onInput=${(/** @type {any} */ e) => setInput(e.target.value)} placeholder="Write a haiku about harbours into haiku.txt"></textarea><//>
      <${Field} label="Files" hint="At most 512 KiB together. They are in the folder of the run before its first step."><input type="file" multiple onChange=${(/** @type {any} */ e) => setFiles([...e.target.files])} /><//>
      <div class="actions"><${Act} class="main" needs="submit" disabled=${!input.trim()} act=${act}>Run<//></div></form>`}<//>
    ${run && html`<section class="tried"><p><${RunLink} id=${run}>Open this run alone<//></p><${Run} key=${run} id=${run} /></section>`}
  <//>`;
}

/** @param {Uint8Array} data */
function base64(data) {
  let text = "";
  for (let i = 0; i < data.length; i += 0x8000) text += String.fromCharCode(...data.subarray(i, i + 0x8000));
  return btoa(text);
}
