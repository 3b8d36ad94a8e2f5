// Calls and questions that wait for a person, oldest first.
import { html, useEffect, useState } from "../app/html.js";
import { ask, may } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { Empty, Loaded, Page, RunLink, Time } from "../app/ui.js";
import { plain } from "../app/format.js";
import { Decide } from "./decide.js";

export function View() {
  const list = useLoad(async (signal) => {
    const [calls, waiting] = await Promise.all([ask("/v1/approvals", { query: { limit: 200 }, signal }), ask("/v1/tasks", { query: { status: "waiting", limit: 200 }, signal })]);
    const approvals = calls.approvals.map((/** @type {any} */ a) => ({ ...a, kind: "approval" }));
    const known = new Set(approvals.map((/** @type {any} */ a) => a.id));
    const questions = waiting.runs.filter((/** @type {any} */ r) => !known.has(r.id) && (r.waits === "answer" || r.waits === "budget")).map((/** @type {any} */ r) => ({ kind: r.waits, id: r.id, agent: r.agent, since: r.updatedAt, input: r.input }));
    return { items: [...approvals, ...questions].sort((a, b) => Date.parse(a.since) - Date.parse(b.since)), more: calls.more };
  }, [], { every: 3000 });
  const [at, setAt] = useState(0);
  const items = list.data?.items ?? [];
  useEffect(() => {
    const keys = (/** @type {KeyboardEvent} */ e) => {
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(/** @type {Element} */ (e.target).tagName)) return;
      if (e.key === "j") setAt((n) => Math.min(items.length - 1, n + 1));
      if (e.key === "k") setAt((n) => Math.max(0, n - 1));
      if ((e.key === "a" || e.key === "d") && !e.metaKey && !e.ctrlKey) document.querySelector(e.key === "a" ? ".waits.at button.main" : ".waits.at button.danger")?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    };
    document.addEventListener("keydown", keys);
    return () => document.removeEventListener("keydown", keys);
  }, [items.length]);
  return html`<${Page} title="Inbox" lead=${may("decide") ? "Calls and questions that wait for a person, oldest first. Keys: j and k to move, a to approve, d to deny." : "Calls and questions that wait for a person, oldest first. To decide needs the role approver."}>
    <${Loaded} of=${list}>${(/** @type {any} */ l) => (l.items.length === 0 ? html`<${Empty} title="Nothing waits for you">Calls that need an approval, and questions of agents, come here.<//>`
      : html`<div class="stack">${l.items.map((/** @type {any} */ a, /** @type {number} */ i) => html`<section class=${`card waits ${i === at ? "at" : ""}`} key=${`${a.id} ${a.call ?? ""}`} onFocusIn=${() => setAt(i)}>
          <p><b>${plain(a.tool ?? a.kind, 100)}</b> for <${RunLink} id=${a.id} /> of ${plain(a.agent, 64)}, since <${Time} at=${a.since} />${a.until ? html`. Without a decision it is denied <${Time} at=${a.until} />` : ""}.</p>
          ${a.kind === "approval" ? html`<${Decide} id=${a.id} waiting=${{ reason: "approval", callId: a.call }} call=${{ name: a.tool, args: a.arguments, approval: { hash: a.hash } }} done=${list.reload} />` : html`<${Question} item=${a} done=${list.reload} />`}
        </section>`)}</div>${l.more && html`<p class="faint">There are more.</p>`}`)}<//>
  <//>`;
}

/** @param {{item: any, done: () => void}} props */
function Question({ item, done }) {
  const why = useLoad((signal) => ask(`/v1/tasks/${encodeURIComponent(item.id)}/why`, { signal }), [item.id]);
  return html`<${Loaded} of=${why} rows=${1}>${(/** @type {any} */ w) => html`<${Decide} id=${item.id} waiting=${{ reason: item.kind, callId: item.kind === "answer" ? w.call : undefined, question: w.text }} done=${done} />`}<//>`;
}
