// Approve or deny a call or a budget that waits, or answer a question.
import { html, useState } from "../app/html.js";
import { make, may } from "../app/api.js";
import { Act, Field } from "../app/ui.js";
import { json, plain } from "../app/format.js";
import { Raw } from "../app/text.js";

/** Whether a run that waits for this waits for a person. @param {string} reason */
export const forAPerson = (reason) => reason === "approval" || reason === "answer" || reason === "budget";

/** The object that a text holds; null: it holds none. @param {string} text */
function objectOf(text) {
  try { const v = JSON.parse(text); return typeof v === "object" && !Array.isArray(v) ? v : null; } catch { return null; }
}

/**
 * @param {{id: string, waiting: {reason: string, callId?: string, question?: string}, call?: any, done?: () => void}} props done: loads again what has changed
 */
export function Decide({ id, waiting, call, done }) {
  const [text, setText] = useState("");
  const [args, setArgs] = useState(/** @type {string | null} */ (null));
  const path = /** @type {const} */ (`/v1/tasks/${encodeURIComponent(id)}`);
  if (waiting.reason === "answer") {
    return html`<div class="stack"><p>${plain(waiting.question ?? "", 4000)}</p>
      <${Field} label="Answer"><textarea value=${text} onInput=${(/** @type {Edited} */ e) => setText(e.target.value)}></textarea><//>
      <div class="actions"><${Act} class="main" needs="decide" disabled=${!text.trim()} done="Answered" act=${async () => { await make(`${path}/answers`, { text, ...(waiting.callId ? { call: waiting.callId } : {}) }); done?.(); }}>Answer<//></div></div>`;
  }
  const whole = waiting.reason === "approval" && call ? objectOf(call.args) : null;
  const changed = args === null ? null : objectOf(args);
  const decide = (/** @type {string} */ decision) => async () => {
    const hash = call?.approval?.hash;
    const others = decision === "approve" && args !== null ? { arguments: changed } : {};
    await make(`${path}/approvals`, { ...(waiting.callId ? { call: waiting.callId } : {}), decision, ...(hash ? { hash } : {}), ...(text ? { reason: text } : {}), ...others });
    done?.();
  };
  return html`<div class="stack">${waiting.reason === "budget" && html`<p>${plain(waiting.question ?? "", 4000)} Approving grants the budget once more; denying ends the run.</p>`}${call && html`<div><b>${plain(call.name, 100)}</b> <${Raw} value=${call.args} /></div>`}
    ${waiting.reason === "approval" && call && (!call.approval?.editable ? html`<p class="faint">The arguments cannot be changed: neither the agent nor the rule that asks allows it.</p>`
      : whole === null ? html`<p class="faint">The arguments are too long to be changed here: <code>longshore approve --arguments</code> takes others from a file.</p>`
      : args === null ? html`<div><button type="button" disabled=${!may("decide")} onClick=${() => setArgs(json(whole, 2))}>Change the arguments</button></div>`
      : html`<div class="stack"><${Field} label="Arguments" hint="The call is made with these, once; the agent is told." error=${changed === null ? "This is not a JSON object." : ""}><textarea name="arguments" rows="8" spellcheck=${false} value=${args} onInput=${(/** @type {Edited} */ e) => setArgs(e.target.value)}></textarea><//><div><button type="button" onClick=${() => setArgs(null)}>Leave them as they are</button></div></div>`)}
    <${Field} label="Reason (optional)" hint=${waiting.reason === "approval" ? "Recorded. If you deny, the agent reads it: say what to do instead." : "Recorded."}><input name="reason" value=${text} onInput=${(/** @type {Edited} */ e) => setText(e.target.value)} /><//>
    <div class="actions"><${Act} class="danger" needs="decide" done="Denied" act=${decide("deny")}>Deny<//><${Act} class="main" needs="decide" done="Approved" disabled=${args !== null && changed === null} act=${decide("approve")}>${args === null ? "Approve" : "Approve with these arguments"}<//></div></div>`;
}
