// The frame of the console: who is here, where one can go, and the view of the address.
import { html, render, signal, useEffect, useLayoutEffect, useRef, useState } from "./app/html.js";
import { caller, canSignOut, identify, may, reachable, signIn, signOut, signedOut, unable } from "./app/api.js";
import { place, refine, tenant, to, go } from "./app/route.js";
import { Failure, Field, Sayings, Skeleton, say, Dialog } from "./app/ui.js";
import { plain } from "./app/format.js";
import "./app/focus.js";

// Views are loaded when they are first asked for. Each file has a function View({id}).
const views = /** @type {Record<string, {name: string, key: string, needs?: string, load: () => Promise<{View: any}>, hidden?: boolean}>} */ ({
  "": { name: "Overview", key: "o", load: () => import("./views/overview.js") },
  runs: { name: "Runs", key: "r", load: () => import("./views/runs.js") },
  compare: { name: "Compare", key: "", hidden: true, load: () => import("./views/compare.js") },
  inbox: { name: "Inbox", key: "i", load: () => import("./views/inbox.js") },
  try: { name: "Try it", key: "t", load: () => import("./views/try.js") },
  agents: { name: "Agents", key: "a", load: () => import("./views/agents.js") },
  prompts: { name: "Prompts", key: "p", load: () => import("./views/prompts.js") },
  sessions: { name: "Sessions", key: "s", load: () => import("./views/sessions.js") },
  batches: { name: "Batches", key: "b", load: () => import("./views/batches.js") },
  schedules: { name: "Schedules", key: "c", load: () => import("./views/schedules.js") },
  lanes: { name: "Lanes", key: "l", load: () => import("./views/lanes.js") },
  "dead-letters": { name: "Dead letters", key: "d", load: () => import("./views/dead.js") },
  memory: { name: "Memory", key: "m", load: () => import("./views/memory.js") },
  tools: { name: "Tools", key: "x", needs: "read-fleet", load: () => import("./views/tools.js") },
  suites: { name: "Evaluation", key: "e", load: () => import("./views/suites.js") },
  workspaces: { name: "Workspaces", key: "f", load: () => import("./views/workspaces.js") },
  workers: { name: "Workers", key: "w", needs: "read-fleet", load: () => import("./views/workers.js") },
  quotas: { name: "Quotas", key: "q", needs: "read-fleet", load: () => import("./views/quotas.js") },
  keys: { name: "API keys", key: "k", needs: "manage-keys", load: () => import("./views/keys.js") },
  audit: { name: "Audit", key: "u", needs: "administer", load: () => import("./views/audit.js") },
});
const details = /** @type {Record<string, () => Promise<{View: any}>>} */ ({
  runs: () => import("./views/run.js"),
});

const loaded = signal(/** @type {Record<string, any>} */ ({}));

/** The view of a path and what it is about; without load: there is none. */
function viewOf(/** @type {string} */ path) {
  const [, first = "", ...rest] = path.split("/");
  let id = "";
  try {
    id = rest.map(decodeURIComponent).join("/");
  } catch { // what is not UTF-8 names nothing
    return { first: "", id, key: "", load: undefined };
  }
  const detail = id && Object.hasOwn(details, first) ? details[first] : undefined;
  return { first, id, key: detail ? `${first}/` : first, load: detail ?? (Object.hasOwn(views, first) ? views[first].load : undefined) };
}

function Content() {
  const { key, id, load } = viewOf(place.value.path);
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    setError(undefined);
    if (!load || loaded.value[key]) return;
    let left = false;
    load().then((m) => (loaded.value = { ...loaded.value, [key]: m.View }), () => { if (!left) setError(new Error("this view could not be loaded: the dispatcher does not answer")); });
    return () => { left = true; };
  }, [key, turn]);
  const View = loaded.value[key];
  if (!load) return html`<div class="empty"><h1>Page not found</h1><p><a href=${to("/")}>Go to the overview</a></p></div>`;
  if (error) return html`<${Failure} error=${error} retry=${() => setTurn(turn + 1)} />`;
  return View ? html`<${View} id=${id} key=${`${key}${id}`} />` : html`<${Skeleton} rows=${6} />`;
}

function Menu() {
  const { first } = viewOf(place.value.path);
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [place.value.path]);
  return html`<nav class="menu" aria-label="Views">
    <a class="brand" href=${to("/")}><img src=${new URL("./icon.svg", import.meta.url).pathname} alt="" width="24" height="24" />Longshore</a>
    <button class="quiet more" aria-expanded=${open} aria-controls="views" onClick=${() => setOpen(!open)}>Menu</button>
    <ul id="views" class=${open ? "open" : ""}>${Object.entries(views).filter(([, v]) => !v.hidden).map(([path, v]) => html`<li key=${path}>
      <a href=${to(`/${path}`)} aria-current=${first === path ? "page" : undefined} class=${v.needs && !may(v.needs) ? "barred" : ""}>${v.name}</a></li>`)}
    </ul>
    <${Who} />
  </nav>`;
}

function Who() {
  const c = caller.value;
  if (!c) return null;
  return html`<div class="who">
    ${c.tenant === "*" ? html`<${Tenant} />` : html`<p>Tenant <b>${plain(c.tenant, 64)}</b></p>`}
    ${c.authentication ? html`<p title=${c.roles?.join(", ")}>${plain(c.name || c.id, 64)}</p>` : html`<p class="faint">No authentication</p>`}
    ${canSignOut() && html`<button class="quiet" onClick=${() => signOut().catch((e) => say(e.message, true))}>Sign out</button>`}
    <p class="faint">${plain(c.version, 40)}</p>
  </div>`;
}

/** The tenant, for those who may act for all of them. */
function Tenant() {
  const choose = (/** @type {Event} */ e) => {
    e.preventDefault();
    const value = /** @type {HTMLInputElement} */ (/** @type {HTMLFormElement} */ (e.target).elements.namedItem("tenant")).value.trim();
    refine({ tenant: value === "default" ? "" : value });
  };
  return html`<form onSubmit=${choose}><label class="field"><span>Tenant</span>
    <input name="tenant" key=${tenant.value} defaultValue=${tenant.value} placeholder="default" pattern="[A-Za-z0-9_\\-]{1,64}" title="1 to 64 characters of A-Z a-z 0-9 _ -" spellcheck=${false} autocomplete="off" /></label></form>`;
}

function SignIn() {
  useEffect(() => { document.title = "Sign in · Longshore"; }, []);
  return html`<main class="sign-in" id="main"><h1>Sign in to Longshore</h1><${Key} /></main>`;
}

/** The sign-in of a session that has ended, over the page, which keeps what was typed. */
function SignInAgain() {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => {
    const before = /** @type {HTMLElement | null} */ (document.activeElement), dialog = ref.current;
    dialog?.showModal();
    return () => {
      dialog?.close();
      queueMicrotask(() => (before?.isConnected ? before : document.getElementById("main"))?.focus({ preventScroll: true })); // the page is hidden until then
    };
  }, []);
  return html`<dialog ref=${ref} aria-label="Sign in to Longshore" onCancel=${(/** @type {Event} */ e) => e.preventDefault()}>
    <h2>Sign in to Longshore</h2><p>Your session has ended. Sign in again to continue where you left off.</p><${Key} /></dialog>`;
}

function Key() {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => field.current?.focus(), []);
  const submit = async (/** @type {Event} */ e) => {
    e.preventDefault();
    const input = field.current;
    if (!input || busy) return;
    setBusy(true);
    setError("");
    try {
      await signIn(input.value.trim());
      input.value = "";
    } catch (err) {
      setError(/** @type {Error} */ (err).message);
    }
    setBusy(false);
  };
  return html`<form onSubmit=${submit}>
    <${Field} label="API key or JWT" error=${error} hint="It is exchanged for a cookie that lasts twelve hours, and is not kept in the browser. Make a key with: longshore keys api create">
      <input ref=${field} name="key" type="password" required autofocus autocomplete="off" spellcheck=${false} />
    <//>
    <button class="main" aria-disabled=${busy ? "true" : undefined} aria-busy=${busy}>Sign in</button>
  </form>`;
}

const help = signal(false);

function Help() {
  const rows = [["j, k", "next and previous row"], ["Enter", "open the row"], ["/", "search"], ["g, then a letter", "go to a view"], ["?", "this list"], ["Esc", "close"]];
  return html`<${Dialog} title="Keys" onClose=${() => (help.value = false)}><table class="keys"><tbody>${rows.map(([k, what]) => html`<tr><th scope="row"><kbd>${k}</kbd></th><td>${what}</td></tr>`)}
    ${Object.entries(views).filter(([, v]) => v.key).map(([, v]) => html`<tr><th scope="row"><kbd>g ${v.key}</kbd></th><td>${v.name}</td></tr>`)}</tbody></table><//>`;
}

let chord = 0;

document.addEventListener("keydown", (e) => {
  const target = /** @type {HTMLElement} */ (e.target);
  if (e.metaKey || e.ctrlKey || e.altKey || target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || document.querySelector("dialog[open]")) return;
  if (e.timeStamp < chord) { // when it was pressed, also on a busy page
    const found = Object.entries(views).find(([, v]) => v.key === e.key);
    chord = 0;
    if (found) { e.preventDefault(); go(to(`/${found[0]}`)); }
    return;
  }
  switch (e.key) {
    case "g": chord = e.timeStamp + 1000; break;
    case "?": e.preventDefault(); help.value = true; break;
    case "/": {
      const search = /** @type {HTMLElement | null} */ (document.querySelector("[data-search]"));
      if (search) { e.preventDefault(); search.focus(); }
      break;
    }
    case "j": case "k": {
      const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("main [data-href]")]);
      const here = rows.findIndex((r) => r.contains(target)); // the tab key may have led to another one
      const at = here >= 0 ? here : rows.findIndex((r) => r.classList.contains("at"));
      const next = rows[Math.max(0, Math.min(rows.length - 1, e.key === "j" ? at + 1 : at - 1))];
      for (const r of rows) r.classList.remove("at");
      next?.classList.add("at");
      next?.scrollIntoView({ block: "nearest" });
      /** @type {HTMLElement | null | undefined} */ (next?.querySelector("a"))?.focus();
      break;
    }
    case "Enter": {
      const href = /** @type {HTMLElement | null} */ (document.querySelector("main .at[data-href]"))?.dataset.href;
      if (href && (target === document.body || target.id === "main")) go(href); // what has the focus does by itself what it is there for
      break;
    }
  }
});

function App() {
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const who = () => { setError(undefined); identify().catch((err) => { if (!signedOut.value) setError(err); }); };
  useEffect(who, [tenant.value]);
  const first = useRef(true);
  const last = useRef({ id: "", turn: 0 }); // another caller sees nothing of what the last one typed
  useEffect(() => {
    if (!first.current) document.getElementById("main")?.focus({ preventScroll: true }); // a link has led to another view
    first.current = false;
  }, [place.value.path]);
  useEffect(() => { // a link to a part of a page leads there; to the content the browser does
    const part = location.hash && document.getElementById(location.hash.slice(1));
    if (part && part.id !== "main") { part.scrollIntoView(); part.focus({ preventScroll: true }); }
  }, [place.value]);
  useEffect(() => { if (!error) return; const t = setTimeout(who, 3000); return () => clearTimeout(t); }, [error]);
  if (signedOut.value && !caller.value) return html`<${SignIn} /><${Sayings} />`;
  if (error) return html`<main class="sign-in"><${Failure} error=${error} retry=${who} />${tenant.value && html`<p><a href=${place.value.path}>Continue without the tenant ${plain(tenant.value, 64)}</a></p>`}</main>`;
  const again = signedOut.value;
  if (caller.value) {
    const id = `${caller.value.id} ${caller.value.tenant}`;
    if (last.current.id && last.current.id !== id) last.current.turn++;
    last.current.id = id;
  }
  return html`<div class="frame" key=${last.current.turn} hidden=${again}><a class="skip" href="#main">Skip to the content</a><${Menu} />
    <main id="main" tabindex="-1">
      ${!reachable.value && html`<p class="away" role="alert">The dispatcher does not answer. What you see may be out of date; the page updates itself as soon as it does.</p>`}
      ${reachable.value && unable.value && html`<p class="away" role="alert">The dispatcher cannot answer now: ${plain(unable.value, 400)}. What you see may be out of date; the page updates itself as soon as it can.</p>`}
      ${caller.value ? html`<${Content} />` : html`<${Skeleton} rows=${6} />`}
    </main>
    ${help.value && html`<${Help} />`}</div>
    ${again && html`<${SignInAgain} />`}
    <${Sayings} />`;
}

render(html`<${App} />`, /** @type {Element} */ (document.getElementById("app")));
