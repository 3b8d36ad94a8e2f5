// Approve or deny a call or a budget that waits, or answer a question.
import { html, useState } from "../app/html.js";
import { ask } from "../app/api.js";
import { Act, Field } from "../app/ui.js";
import { plain } from "../app/format.js";
import { Raw } from "../app/text.js";

/** Whether a run that waits for this waits for a person. @param {string} reason */
export const forAPerson = (reason) => reason === "approval" || reason === "answer" || reason === "budget";

/**
 * @param {{id: string, waiting: {reason: string, callId?: string, question?: string}, call?: any, done?: () => void}} props
 */
export function Decide({ id, waiting, call, done }) {
  const [text, setText] = useState("");
  const path = `/v1/tasks/${encodeURIComponent(id)}`;
  if (waiting.reason === "answer") {
    return html`<div class="stack"><p>${plain(waiting.question ?? "", 4000)}</p>
      <${Field} label="Answer"><textarea value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)}></textarea><//>
      <div class="actions"><${Act} class="main" needs="decide" disabled=${!text.trim()} done="Answered" act=${async () => { await ask(`${path}/answers`, { method: "POST", body: { text, ...(waiting.callId ? { call: waiting.callId } : {}) } }); done?.(); }}>Answer<//></div></div>`;
  }
  const decide = (/** @type {string} */ decision) => async () => {
    const hash = call?.approval?.hash;
    await ask(`${path}/approvals`, { method: "POST", body: { ...(waiting.callId ? { call: waiting.callId } : {}), decision, ...(hash ? { hash } : {}), ...(text ? { reason: text } : {}) } });
    done?.();
  };
  return html`<div class="stack">${waiting.reason === "budget" && html`<p>${plain(waiting.question ?? "", 4000)} To approve grants the budget once more; to deny ends the run.</p>`}${call && html`<div><b>${plain(call.name, 100)}</b> <${Raw} value=${call.args} /></div>`}
    <${Field} label="Reason"><input value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)} /><//>
    <div class="actions"><${Act} class="danger" needs="decide" done="Denied" act=${decide("deny")}>Deny<//><${Act} class="main" needs="decide" done="Approved" act=${decide("approve")}>Approve<//></div></div>`;
}
