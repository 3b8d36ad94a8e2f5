// Calls and questions that wait for a person, oldest first.
import { html, useEffect, useRef, useState } from "../app/html.js";
import { ask, may } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { Empty, Loaded, Page, RunLink, Time } from "../app/ui.js";
import { plain } from "../app/format.js";
import { Decide } from "./decide.js";

const asks = /** @type {Record<string, string>} */ ({ approval: "wants to make a call", answer: "has a question", budget: "has spent its budget" });
/** @typedef {{kind: string, id: string, agent?: string, since?: string, until?: string, call?: string, tool?: string, arguments?: string, hash?: string, editable?: boolean, input?: string, why?: API["Why"]}} Item */

const keyOf = (/** @type {Item} */ i) => `${i.id} ${i.call ?? ""}`;

const mostTold = 20; // questions that are loaded with the list, so that those below do not move

export function View() {
  const told = useRef(/** @type {Map<string, API["Why"] | undefined>} */ (new Map()));
  const list = useLoad(async (signal) => {
    const [calls, waiting] = await Promise.all([ask("/v1/approvals", { query: { limit: 200 }, signal }), ask("/v1/tasks", { query: { status: "waiting", limit: 200 }, signal })]);
    const approvals = /** @type {Item[]} */ ((calls.approvals ?? []).map((/** @type {API["WaitingApproval"]} */ a) => ({ ...a, kind: "approval" })));
    const known = new Set(approvals.map((/** @type {Item} */ a) => a.id));
    const questions = /** @type {Item[]} */ ((waiting.runs ?? []).filter((/** @type {API["RunSummary"]} */ r) => !known.has(r.id) && (r.waits === "answer" || r.waits === "budget")).map((/** @type {API["RunSummary"]} */ r) => ({ kind: r.waits, id: r.id, agent: r.agent, since: r.updatedAt, input: r.input })));
    const key = (/** @type {Item} */ q) => `${q.id} ${q.since}`;
    const now = new Map(await Promise.all(questions.slice(0, mostTold).map(async (q) => /** @type {[string, API["Why"] | undefined]} */ ([key(q), told.current.get(key(q)) ?? (await ask(`/v1/tasks/${encodeURIComponent(q.id)}/why`, { signal }).catch(() => undefined))])))); // it may have ended
    told.current = now;
    for (const q of questions) q.why = now.get(key(q));
    return { items: [...approvals, ...questions].sort((a, b) => Date.parse(a.since ?? "") - Date.parse(b.since ?? "")), more: calls.more };
  }, [], { every: 3000 });
  const items = list.data?.items ?? [];
  const mark = useRef({ key: "", after: /** @type {string[]} */ ([]) }); // of what the keys act on, and what comes after it
  const [, drawAgain] = useState(0);
  const at = marked(items, mark.current);
  const put = (/** @type {number} */ i) => { if (items[i]) mark.current = { key: keyOf(items[i]), after: items.slice(i + 1).map(keyOf) }; };
  put(at);
  const setAt = (/** @type {number} */ i) => { put(i); drawAgain((n) => n + 1); };
  useEffect(() => {
    const keys = (/** @type {KeyboardEvent} */ e) => {
      if (e.defaultPrevented || e.metaKey || e.ctrlKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(/** @type {Element} */ (e.target).tagName) || document.querySelector("dialog[open]")) return;
      if (e.key === "j" || e.key === "k") {
        const cards = [...document.querySelectorAll("main .waits")];
        const here = cards.findIndex((c) => c.contains(/** @type {Element} */ (e.target))); // the tab key may just have led to another one
        const next = Math.max(0, Math.min(cards.length - 1, (here >= 0 ? here : at) + (e.key === "j" ? 1 : -1)));
        setAt(next);
        cards[next]?.querySelector("a")?.focus();
      }
      if (!e.repeat && (e.key === "a" || e.key === "d")) /** @type {HTMLButtonElement | null} */ (document.querySelector(e.key === "a" ? ".waits.at button.main" : ".waits.at button.danger"))?.click();
    };
    document.addEventListener("keydown", keys);
    return () => document.removeEventListener("keydown", keys);
  }, [items, at]);
  return html`<${Page} title="Inbox" lead=${may("decide") ? "Calls and questions that wait for a person, oldest first. Keys: j and k to move, a to approve, d to deny." : "Calls and questions that wait for a person, oldest first. Only an approver can decide."}>
    <${Loaded} of=${list}>${(/** @type {{items: Item[], more?: boolean}} */ l) => (!l.items?.length ? html`<${Empty} title="Nothing waits for you">Calls that need an approval and questions from agents appear here.<//>`
      : html`<div class="stack">${l.items.map((/** @type {Item} */ a, /** @type {number} */ i) => html`<section class=${`card waits ${i === at ? "at" : ""}`} key=${keyOf(a)} onFocusIn=${() => setAt(i)}>
          <p><b>${plain(a.agent, 64)}</b> ${asks[a.kind]} in <${RunLink} id=${a.id} />.</p>
          <p class="faint">Asked <${Time} at=${a.since} />.${a.until && html`<br />Without a decision it is denied <${Time} at=${a.until} />.`}</p>
          ${a.kind === "approval" ? html`<${Decide} id=${a.id} waiting=${{ reason: "approval", callId: a.call }} call=${{ name: a.tool, args: a.arguments, approval: { hash: a.hash, editable: a.editable } }} done=${list.reload} />` : html`<${Question} item=${a} done=${list.reload} />`}
        </section>`)}</div>${l.more && html`<p class="faint">There are more.</p>`}`)}<//>
  <//>`;
}

/**
 * Where the mark is: it stays while others come and go. When its item is gone, the next one that is left has it, else the last; at first it is at the oldest.
 * @param {Item[]} items @param {{key: string, after: string[]}} mark
 */
function marked(items, { key, after }) {
  if (!key) return items.length ? 0 : -1;
  const places = new Map(items.map((item, i) => [keyOf(item), i]));
  const left = [key, ...after].find((k) => places.has(k));
  return left === undefined ? items.length - 1 : /** @type {number} */ (places.get(left));
}

/** @param {{item: Item, done: () => void}} props */
function Question({ item, done }) {
  const why = useLoad(async (signal) => item.why ?? ask(`/v1/tasks/${encodeURIComponent(item.id)}/why`, { signal }), [item.id, item.since]);
  return html`<${Loaded} of=${item.why ? { ...why, data: item.why } : why} rows=${1}>${(/** @type {API["Why"]} */ w) => html`<${Decide} key=${w.call ?? w.question} id=${item.id} waiting=${{ reason: item.kind, callId: item.kind === "answer" ? w.call : undefined, question: w.question ?? w.text }} done=${done} />
    ${w.until && html`<p class="faint">${item.kind === "answer" ? "Without an answer the run continues" : "Without a decision it ends"} <${Time} at=${w.until} />.</p>`}`}<//>`;
}
