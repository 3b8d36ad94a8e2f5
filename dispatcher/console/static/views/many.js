// What can be done with many runs at once, after their number is confirmed.
import { html, useState } from "../app/html.js";
import { ask, make } from "../app/api.js";
import { to } from "../app/route.js";
import { Act, Dialog, Field, say } from "../app/ui.js";
import { count } from "../app/format.js";

/** @typedef {{name: string, title: string, text: (n: number) => string, done: string, danger?: boolean}} Deed */

const deeds = /** @type {Record<string, Deed>} */ ({
  cancel: { name: "Cancel", title: "Cancel runs", text: (n) => `${runs(n)} will be cancelled. What was done stays done.`, done: "cancelled", danger: true },
  retry: { name: "Retry", title: "Retry runs", text: (n) => `The ${n === 1 ? "task of 1 run" : `tasks of ${count(n)} runs`} will be submitted again, as new runs.`, done: "submitted again" },
  label: { name: "Label", title: "Label runs", text: (n) => `This label will be added to ${runs(n)}, as feedback.`, done: "labelled" },
});

const runs = (/** @type {number} */ n) => (n === 1 ? "1 run" : `${count(n)} runs`);

const atOnce = 8; // requests

/** What can be done with chosen runs. @param {{ids: string[], rows: any[], choose: (ids: string[]) => void, reload: () => void}} props */
export function Chosen({ ids, rows, choose, reload }) {
  const [asked, setAsked] = useState("");
  const [label, setLabel] = useState("");
  const ended = rows.filter((r) => ids.includes(r.id) && r.finishedAt).map((r) => r.id);
  const of = /** @type {Record<string, string[]>} */ ({ cancel: ids.filter((id) => !ended.includes(id)), retry: ended, label: ids });
  const [key, value] = [label.slice(0, Math.max(0, label.indexOf("="))).trim(), label.slice(label.indexOf("=") + 1).trim()];
  const request = (/** @type {string} */ id) => {
    const path = `/v1/tasks/${encodeURIComponent(id)}`;
    switch (asked) {
      case "cancel": return ask(`${path}/cancel`, { method: "POST", body: { reason: "from the console" } });
      case "retry": return make(`${path}/fork`, { at: 1 }, "newId");
      default: return make(`${path}/feedback`, { labels: { [key]: value } });
    }
  };
  const act = async () => {
    const list = of[asked], results = /** @type {PromiseSettledResult<any>[]} */ ([]);
    for (let i = 0; i < list.length; i += atOnce) results.push(...(await Promise.allSettled(list.slice(i, i + atOnce).map(request))));
    const failed = results.flatMap((r, i) => (r.status === "rejected" ? [{ id: list[i], reason: r.reason }] : []));
    reload();
    if (failed.length) say(`${failed.length} of ${list.length} failed: ${failed[0].reason.message}`, true);
    else say(`${runs(list.length)} ${deeds[asked].done}`);
    return failed.map((f) => f.id);
  };
  const then = (/** @type {string[]} */ failed) => { setAsked(""); choose(failed); };
  const deed = deeds[asked];
  return html`<div class="row chosen"><b>${count(ids.length)} chosen</b>
    ${Object.entries(deeds).map(([name, d]) => html`<button key=${name} disabled=${of[name].length === 0} onClick=${() => setAsked(name)}>${d.name} ${count(of[name].length)}</button>`)}
    ${ids.length === 2 && html`<a class="button" href=${to(`/compare/${ids.map(encodeURIComponent).join("/")}`)}>Compare</a>`}
    <button class="quiet" onClick=${() => choose([])}>Choose none</button>
    ${deed && html`<${Dialog} title=${deed.title} onClose=${() => setAsked("")}><div class="stack"><p>${deed.text(of[asked].length)}</p>
      ${asked === "label" && html`<${Field} label="Label"><input name="label" value=${label} placeholder="key=value" spellcheck=${false} onInput=${(/** @type {any} */ e) => setLabel(e.target.value)} /><//>`}
      <div class="actions"><button onClick=${() => setAsked("")}>Back</button><${Act} class=${deed.danger ? "danger" : "main"} needs="submit" disabled=${asked === "label" && (!key || !value)} act=${act} then=${then}>${deed.name} ${runs(of[asked].length)}<//></div></div><//>`}
  </div>`;
}
