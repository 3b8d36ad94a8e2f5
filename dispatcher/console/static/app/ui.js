// The parts that views share.
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { Problem, caller, may } from "./api.js";
import { ago, exact, plain } from "./format.js";
import { to } from "./route.js";

/** The time, every second while somebody may look; for "3 s ago". */
export const now = signal(Date.now());
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);

/** A view with its heading. @param {{title: any, name?: string, actions?: any, children?: any, lead?: any}} props name: the title, if that is not text */
export function Page({ title, name = typeof title === "string" ? title : "", actions, lead, children }) {
  useEffect(() => { document.title = name ? `${name} · Longshore` : "Longshore"; }, [name]);
  return html`
    <header class="page-head">
      <div><h1>${title}</h1>${lead && html`<p class="lead">${lead}</p>`}</div>
      ${actions && html`<div class="actions">${actions}</div>`}
    </header>
    ${children}`;
}

/** What a load shows: its data, the place that it will take, or its error. @param {{of: {data: any, error?: Error, loading: boolean, reload: () => void}, rows?: number, children: (data: any) => any}} props */
export function Loaded({ of, rows = 4, children }) {
  const failed = of.error && html`<${Failure} error=${of.error} retry=${of.reload} />`;
  if (of.data === undefined) return failed || html`<${Skeleton} rows=${rows} />`;
  return html`${failed}${children(of.data)}`;
}

/** @param {{rows?: number}} props */
export const Skeleton = ({ rows = 4 }) => html`<div class="skeleton" role="status" aria-label="Loading" tabindex="-1">${Array.from({ length: rows }, () => html`<div></div>`)}</div>`;

/** The sentence of an error, and a retry. @param {{error: Error, retry?: () => void}} props */
export function Failure({ error, retry }) {
  const gone = error instanceof Problem && error.status === 404;
  return html`<div class="failure" role="alert">
    <p>${plain(error.message)}</p>
    ${retry && !gone && html`<button onClick=${retry}>Try again</button>`}
  </div>`;
}

/** What a view without content says: what to do next. @param {{title: string, children?: any, command?: string}} props */
export const Empty = ({ title, children, command }) => html`<div class="empty">
  <h2>${title}</h2>
  ${children && html`<p>${children}</p>`}
  ${command && html`<${Command} text=${command} />`}
</div>`;

const mostShown = 20_000; // characters of a command; it is copied whole

/** A command to copy. @param {{text: string}} props */
export const Command = ({ text }) => html`<div class="command"><pre tabindex="0">${plain(text, mostShown)}</pre><${Copy} text=${text} label="Copy" /></div>`;

/** @param {{text: string, label: string}} props */
export function Copy({ text, label }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text).then(() => setDone(true), () => say("The browser does not allow copying here."));
    setTimeout(() => setDone(false), 1500);
  };
  return html`<button class="quiet" onClick=${copy}>${done ? "Copied" : label}</button>`;
}

/** A time as people say it; its exact form on hover. @param {{at?: string}} props */
export const Time = ({ at }) => (at ? html`<time datetime=${at} title=${exact(at)}>${ago(at, now.value)}</time>` : null);

const tones = /** @type {Record<string, string>} */ ({
  completed: "good", running: "live", resuming: "live", active: "live", queued: "calm", waiting: "wait", paused: "wait", parked: "wait", failed: "bad", cancelled: "calm", rejected: "bad",
});

/** @param {{of: string}} props */
export const Status = ({ of }) => html`<span class=${`status ${tones[of] ?? "calm"}`}>${plain(of, 40)}</span>`;

/** A link to a run. @param {{id: string, tab?: string, children?: any}} props */
export const RunLink = ({ id, tab, children }) => html`<a class="id" href=${to(`/runs/${encodeURIComponent(id)}`, { tab })}>${children ?? plain(id, 64)}</a>`;

/**
 * A table whose rows are links, opened with a click and walked through with j and k.
 * @param {{columns: {name: string, cell: (row: any) => any, class?: string}[], rows: any[], keyOf: (row: any) => string, label: string, href?: (row: any) => string}} props
 */
export function Table({ columns, rows, keyOf, label, href }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table>
    <thead><tr>${columns.map((c) => (c.name ? html`<th scope="col" class=${c.class}>${c.name}</th>` : html`<td class=${c.class}></td>`))}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${keyOf(row)} data-href=${href?.(row)}>${columns.map((c) => html`<td class=${c.class}>${c.cell(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/** What was said last at the edge of the page. */
const said = signal(/** @type {{text: string, bad: boolean, n: number} | null} */ (null));
let sayings = 0;

/** Says something at the edge of the page for some seconds. @param {string} text @param {boolean} [bad] */
export function say(text, bad = false) {
  const n = ++sayings;
  said.value = { text, bad, n };
  setTimeout(() => { if (said.value?.n === n) said.value = null; }, bad ? 10_000 : 4000);
}

export const Sayings = () => html`<div class="sayings" role="status" aria-live="polite">${said.value && html`<p class=${said.value.bad ? "bad" : ""}>${plain(said.value.text)} <button class="quiet" onClick=${() => (said.value = null)}>Close</button></p>`}</div>`;

// A key that is held down presses a button once.
document.addEventListener("keydown", (e) => {
  if (e.repeat && e.key === "Enter" && !/** @type {Element} */ (e.target).matches("textarea")) e.preventDefault();
});

/**
 * A button that asks the API for something: once at a time and for a double click, disabled for those who may not, and it says what came of it.
 *
 * An answer that comes after the button was left, with its dialog or view, changes nothing on the page but the message at its edge. So act makes the
 * requests and loads again what has changed; what else the page does with the answer, such as closing a dialog or leading to another address, is then's.
 * @param {{act: () => Promise<any>, then?: (answer: any) => void, needs?: string, done?: string | ((answer: any) => string), class?: string, children: any, disabled?: boolean, title?: string}} props
 *   done: what is said when it is done
 */
export function Act({ act, then, needs, done, class: look, children, disabled, title }) {
  const [busy, setBusy] = useState(false);
  const running = useRef(false); // it stays enabled meanwhile: what is disabled loses the focus
  const left = useRef(false);
  useEffect(() => () => { left.current = true; }, []);
  const allowed = !needs || may(needs);
  const run = async (/** @type {MouseEvent} */ e) => {
    if (running.current || e.detail > 1) return;
    running.current = true;
    setBusy(true);
    try {
      const answer = await act();
      if (!left.current) then?.(answer);
      if (done) say(typeof done === "string" ? done : done(answer));
    } catch (err) {
      say(/** @type {Error} */ (err).message, true);
    }
    running.current = false;
    setBusy(false);
  };
  const why = allowed ? title : `This needs the permission ${needs}; you have the roles ${caller.value?.roles?.join(", ") || "none"}.`;
  return html`<button class=${look} disabled=${disabled || !allowed} aria-disabled=${busy ? "true" : undefined} aria-busy=${busy} title=${why} onClick=${run}>${children}</button>`;
}

/** A dialog over the page. @param {{title: string, onClose: () => void, children: any, wide?: boolean}} props */
export function Dialog({ title, onClose, children, wide }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => {
    const opener = /** @type {HTMLElement | null} */ (document.activeElement);
    const dialog = ref.current;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (document.activeElement === document.body || dialog?.contains(document.activeElement)) opener?.focus();
    };
  }, []);
  return html`<dialog ref=${ref} class=${wide ? "wide" : ""} aria-label=${title} onCancel=${(/** @type {Event} */ e) => { e.preventDefault(); onClose(); }}>
    <header><h2>${title}</h2><button class="quiet" aria-label="Close" onClick=${onClose}>Close</button></header>
    ${children}
  </dialog>`;
}

/** A labelled field of a form. @param {{label: string, hint?: string, error?: string, wide?: boolean, children: any}} props */
export const Field = ({ label, hint, error, wide, children }) => html`<label class=${wide ? "field wide" : "field"}><span>${label}</span>${children}${hint && html`<small>${hint}</small>`}${error && html`<small class="bad" role="alert">${error}</small>`}</label>`;

/** A field whose text counts when it is left or Enter is pressed. What is being typed stays while the page is drawn again. @param {{value: string, [name: string]: any}} props */
export function Typed({ value, ...rest }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return html`<input ...${rest} value=${text} onInput=${(/** @type {Edited} */ e) => setText(e.target.value)} />`;
}

/** Tabs that the address keeps. @param {{tabs: [string, string][], at: string, href: (tab: string) => string, label: string}} props */
export const Tabs = ({ tabs, at, href, label }) => html`<nav class="tabs" aria-label=${label}>${tabs.map(([id, name]) => html`<a key=${id} href=${href(id)} aria-current=${id === at ? "page" : undefined}>${name}</a>`)}</nav>`;

/** Pairs of a name and a value. @param {{of: [string, any, ("wide" | "")?][]}} props those without a value are left out; wide: it has a row to itself */
export const Facts = ({ of }) => html`<dl class="facts">${of.filter(([, v]) => v !== undefined && v !== null && v !== "" && v !== false).map(([k, v, room = ""]) => html`<div key=${k} class=${room}><dt>${k}</dt><dd>${v}</dd></div>`)}</dl>`;
