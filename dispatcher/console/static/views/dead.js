// Dead letters: look, edit, send again, remove.
import { html, useState } from "../app/html.js";
import { ask } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { place, refine, to } from "../app/route.js";
import { Act, Dialog, Empty, Field, Loaded, Page, RunLink, Table, Time, Typed } from "../app/ui.js";
import { bytes, json, plain } from "../app/format.js";
import { Raw } from "../app/text.js";

export function View() {
  const params = place.value.params;
  const query = { agent: params.get("agent") ?? "", code: params.get("code") ?? "", after: params.get("after") ?? "", limit: 50 };
  const list = useLoad((signal) => ask("/v1/dead-letters", { query, signal }), [params.toString()], { every: 10_000 });
  const [open, setOpen] = useState(0);
  const change = (/** @type {string} */ name) => (/** @type {Edited} */ e) => refine({ [name]: e.target.value.trim(), after: "" });
  return html`<${Page} title="Dead letters" lead="Tasks that could not be worked on and webhooks that could not be delivered, oldest first. They are kept until they are sent again or removed.">
    <search class="filters"><${Field} label="Agent"><${Typed} data-search value=${query.agent} spellcheck=${false} onChange=${change("agent")} /><//><${Field} label="Error code"><${Typed} value=${query.code} spellcheck=${false} onChange=${change("code")} /><//></search>
    <${Loaded} of=${list}>${(/** @type {API["DeadList"]} */ l) => (!l.letters?.length ? (query.agent || query.code ? html`<${Empty} title="No dead letter matches"><a href=${to("/dead-letters")}>Show all</a><//>` : html`<${Empty} title="No dead letters">Every task ended with a result, and every webhook was delivered.<//>`) : html`<${Table} label="Dead letters" rows=${l.letters} keyOf=${(/** @type {API["DeadLetter"]} */ d) => String(d.seq)} columns=${[
      { name: "Number", cell: (/** @type {API["DeadLetter"]} */ d) => html`<button class="quiet" onClick=${() => setOpen(d.seq)}>${d.seq}</button>` },
      { name: "Kind", cell: (/** @type {API["DeadLetter"]} */ d) => plain(d.kind, 40) },
      { name: "Run", cell: (/** @type {API["DeadLetter"]} */ d) => (d.run ? html`<${RunLink} id=${d.run} />` : "") },
      { name: "Agent", cell: (/** @type {API["DeadLetter"]} */ d) => plain(d.agent, 64) },
      { name: "Error", class: "text", cell: (/** @type {API["DeadLetter"]} */ d) => html`<code>${plain(d.error.code, 40)}</code> ${plain(d.error.message, 200)}` },
      { name: "Size", class: "number", cell: (/** @type {API["DeadLetter"]} */ d) => bytes(d.size) },
      { name: "When", cell: (/** @type {API["DeadLetter"]} */ d) => html`<${Time} at=${d.time} />` },
    ]} />${l.next ? html`<p><button onClick=${() => refine({ after: String(l.next) }, { replace: false })}>More</button></p>` : ""}`)}<//>
    ${open > 0 && html`<${Letter} seq=${open} close=${() => { setOpen(0); list.reload(); }} />`}
  <//>`;
}

/** @param {{seq: number, close: () => void}} props */
function Letter({ seq, close }) {
  const letter = useLoad((signal) => ask(`/v1/dead-letters/${String(seq)}`, { signal }), [seq]);
  const [text, setText] = useState(/** @type {string | null} */ (null));
  return html`<${Dialog} wide title=${`Dead letter ${seq}`} onClose=${close}><${Loaded} of=${letter}>${(/** @type {API["DeadLetter"]} */ d) => {
    const task = d.task ? json(d.task, 2) : "";
    return html`<div class="stack"><p class="bad"><code>${plain(d.error.code, 40)}</code> ${plain(d.error.message, 4000)}</p>
      ${task ? html`<${Field} label="Task" hint="If you edit it, the edited task is submitted, as a new run."><textarea rows="14" spellcheck=${false} value=${text ?? task} onInput=${(/** @type {Edited} */ e) => setText(e.target.value)}></textarea><//>` : html`<${Raw} value=${d.raw ?? ""} />`}
      <div class="actions">
        <${Act} class="danger" needs="operate" act=${() => ask(`/v1/dead-letters/${String(seq)}`, { method: "DELETE" })} then=${close} done="Removed">Remove<//>
        <${Act} class="main" needs="operate" act=${async () => {
          const edited = text !== null && text !== task;
          const body = edited ? JSON.parse(/** @type {string} */ (text)) : undefined;
          return ask(`/v1/dead-letters/${String(seq)}/redrive`, { method: "POST", body });
        }} then=${close} done=${(/** @type {API["DeadRedriven"]} */ made) => `Sent again as ${made.id}`}>Send again<//></div></div>`;
  }}<//><//>`;
}
