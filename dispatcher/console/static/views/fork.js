// Fork a run from one of its steps, with another prompt, model or agent.
import { html, useState } from "../app/html.js";
import { ask, make, may } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { to } from "../app/route.js";
import { Act, Dialog, Field, Loaded, RunLink } from "../app/ui.js";
import { cost, plain } from "../app/format.js";
import { storeDraft } from "../app/draft.js";

/** An agent as people write it: name, or name@revision. @param {string} text */
function agentOf(text) {
  const [agent, revision] = text.trim().split("@");
  return { ...(agent ? { agent } : {}), ...(revision ? { revision: Number(revision) } : {}) };
}

/** @param {{id: string, path: import("./run.js").RunPath, run: import("../app/fold.js").Run, close: () => void}} props */
export function Fork({ id, path, run, close }) {
  const first = run.steps[0]?.n ?? 1, last = run.steps[run.steps.length - 1]?.n ?? 1;
  const [at, setAt] = useState(String(last));
  const [call, setCall] = useState("");
  const [model, setModel] = useState("");
  const [agent, setAgent] = useState("");
  const [rewrites, setRewrites] = useState(false);
  const [prompt, setPrompt] = useState(/** @type {string | null} */ (null));
  const [made, setMade] = useState("");
  const asked = (run.steps.find((s) => s.n === Number(at))?.calls ?? []).filter((c) => c.approval || c.name === "ask_human");
  const again = asked.some((c) => c.id === call) ? call : "";
  const definition = useLoad((signal) => ask(`/v1/agents/${encodeURIComponent(run.agent)}${run.revision ? `/revisions/${run.revision}` : ""}`, { signal }).then((a) => a.agent ?? a), [run.agent, run.revision]);
  const act = async () => {
    const other = prompt === null || prompt === definition.data.instructions ? agentOf(agent) : await storeDraft({ ...definition.data, prompt: undefined, instructions: prompt });
    return make(`${path}/fork`, { at: Number(at), ...(again ? { call: again } : {}), ...(model ? { model } : {}), ...other }, "newId");
  };
  const from = Number(at);
  const spent = run.steps.filter((s) => s.n >= from).reduce((sum, s) => sum + (s.cost ?? 0), 0);
  const kept = from <= first ? "Nothing is kept: the fork starts from the beginning." : from === first + 1 ? `Step ${first} is kept.` : `Steps ${first} to ${from - 1} are kept.`;
  const models = [...new Set(run.steps.filter((s) => s.model).map((s) => `${s.provider}/${s.model}`))];
  if (made) return html`<${Dialog} title="Forked" onClose=${close}><p>The fork is <${RunLink} id=${made} />.${again && " It asks again: answer there, or in the comparison."}</p><div class="actions"><a class="button main" href=${to(`/compare/${encodeURIComponent(id)}/${encodeURIComponent(made)}`)}>Compare the two</a></div><//>`;
  return html`<${Dialog} title="Fork this run" onClose=${close}><div class="stack"><p>A fork is a new run of the same task; this run stays as it is. It keeps the steps before the one that you choose, with their results and files: they are not paid for again. It redoes that step and those after it: models are called and paid for, and tools act again.</p>
    <${Field} label="From step" hint=${`${kept}${spent > 0 ? ` The rest of this run cost ${cost(spent)}.` : ""}`}><input name="at" type="number" min=${first} max=${last} value=${at} onInput=${(/** @type {any} */ e) => setAt(e.target.value)} /><//>
    ${asked.length > 0 && html`<${Field} label="In this step" hint="To give another answer or decision, keep the model's reply: the fork waits for a person there, and no model is called before that."><select name="call" value=${again} onChange=${(/** @type {any} */ e) => setCall(e.target.value)}><option value="">Call the model again</option>${asked.map((c) => html`<option key=${c.id} value=${c.id}>Keep its reply, and ask again about ${plain(c.name, 60)} (${plain(c.id, 40)})</option>`)}</select><//>`}
    <${Field} label="Model" hint="As provider/model. If it is empty, the fork uses the same model."><input name="model" list="models" value=${model} spellcheck=${false} autocomplete="off" onInput=${(/** @type {any} */ e) => setModel(e.target.value)} /><//>
    <datalist id="models">${models.map((m) => html`<option key=${m} value=${m}></option>`)}</datalist>
    <${Field} label="Agent" hint="As name or name@revision. If it is empty, the fork uses the same agent, at the same revision."><input name="agent" value=${agent} spellcheck=${false} disabled=${rewrites} onInput=${(/** @type {any} */ e) => setAgent(e.target.value)} /><//>
    ${!rewrites
      ? html`<div><button disabled=${!may("author") || agent !== ""} title=${may("author") ? "" : "This needs the permission author."} onClick=${() => setRewrites(true)}>Change the instructions</button></div>`
      : html`<${Loaded} of=${definition} rows=${2}>${(/** @type {any} */ d) => html`<${Field} label="Instructions" hint=${`Stored as the draft of ${plain(run.agent, 64)}; the agent itself stays as it is.`}>
          <textarea name="instructions" rows="8" value=${prompt ?? d.instructions ?? ""} onInput=${(/** @type {any} */ e) => setPrompt(e.target.value)}></textarea><//>`}<//>`}
    <div class="actions"><${Act} class="main" needs="submit" act=${act} then=${(/** @type {API["ForkReply"]} */ fork) => setMade(fork.id)} done=${(/** @type {API["ForkReply"]} */ fork) => `Forked as ${fork.id}`}>Fork<//></div></div><//>`;
}
