// The HTTP API: requests, streams of events, and who is asking.
import { signal } from "./html.js";
import { tenant } from "./route.js";

/** An error of the API: its sentence, and whether it helps to ask again. */
export class Problem extends Error {
  /** @param {{status?: number, code?: string, detail?: string, title?: string, field?: string, retryable?: boolean}} p */
  constructor(p) {
    super(p.field ? `${p.field}: ${p.detail}` : (p.detail ?? p.title ?? "the request failed"));
    this.status = p.status ?? 0;
    this.code = p.code ?? "";
    this.field = p.field ?? "";
    this.retryable = p.retryable ?? false;
  }
}

/** Who is signed in, and what the caller may do; null until it is known.
 * @type {import("../vendor/signals.js").Signal<API["Caller"] | null>} */
export const caller = signal(/** @type {API["Caller"] | null} */ (null));

/** Whether the dispatcher has answered lately. @type {import("../vendor/signals.js").Signal<boolean>} */
export const reachable = signal(true);

/** Why the dispatcher cannot do what it is asked for now, such as that NATS does not answer it; empty: it can. @type {import("../vendor/signals.js").Signal<string>} */
export const unable = signal("");

/** Whether a session is needed and there is none. @type {import("../vendor/signals.js").Signal<boolean>} */
export const signedOut = signal(false);

/** @param {string} permission */
export const may = (permission) => caller.value?.permissions?.includes(permission) ?? false;

const patience = 30_000;

/**
 * Asks the API.
 * @template {string} Path
 * @template {string} [Method="GET"]
 * @param {Path & Known<Path>} path such as /v1/tasks
 * @param {{method?: Method, query?: Record<string, any>, body?: any, headers?: Record<string, string>, signal?: AbortSignal}} [how] a body is sent as JSON
 * @returns {Promise<Reply<Path, Method>>} the answer; a Problem if there is none
 */
export async function ask(path, how = {}) {
  const response = await send(path, how);
  const text = await response.text().catch((err) => {
    throw how.signal?.aborted ? err : new Problem({ detail: "the connection to the dispatcher broke before its answer was complete", retryable: true });
  });
  return text ? JSON.parse(text) : /** @type {any} */ (null);
}

// The ids of what was asked to be made and has not been answered, by what it is.
const unanswered = /** @type {Map<string, string>} */ (new Map());
const mostUnanswered = 100;

/**
 * Asks the API to make something. Until that is answered, the same thing is asked for under the same id, so that a second attempt, such as one after
 * the answer was lost, does not make another.
 * @template {string} Path
 * @param {Path & Known<Path>} path
 * @param {Record<string, any>} [body]
 * @param {"id" | "newId"} [field] of the body that takes the id; by default it is a header
 * @returns {Promise<Reply<Path, "POST">>}
 */
export async function make(path, body, field) {
  const what = JSON.stringify([caller.value?.id, tenant.value, path, body]);
  const id = unanswered.get(what) ?? newID();
  unanswered.delete(what); // it becomes the newest
  unanswered.set(what, id);
  if (unanswered.size > mostUnanswered) unanswered.delete(/** @type {string} */ (unanswered.keys().next().value));
  try {
    const answer = await ask(/** @type {any} */ (path), { method: "POST", ...(field ? { body: { ...body, [field]: id } } : { body, headers: { "Idempotency-Key": id } }) });
    unanswered.delete(what);
    return answer;
  } catch (err) {
    if (err instanceof Problem && err.status && !err.retryable && err.status < 500) unanswered.delete(what); // it was refused
    throw err;
  }
}

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** A ULID, as the dispatcher makes them. */
function newID() {
  let id = "";
  for (let time = Date.now(), i = 0; i < 10; i++, time = Math.floor(time / 32)) id = alphabet[time % 32] + id;
  for (const byte of crypto.getRandomValues(new Uint8Array(16))) id += alphabet[byte % 32];
  return id;
}

/**
 * Asks the API for something that is not JSON.
 * @param {string} path
 * @param {{method?: string, query?: Record<string, any>, body?: any, headers?: Record<string, string>, signal?: AbortSignal, endless?: boolean}} [how] endless: a stream
 */
export async function send(path, how = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(how.query ?? {})) {
    for (const v of Array.isArray(value) ? value : [value]) if (v !== undefined && v !== null && v !== "") query.append(name, String(v));
  }
  const headers = new Headers(how.headers);
  if (tenant.value) headers.set("Longshore-Tenant", encodeURIComponent(tenant.value)); // a name of a tenant stays as it is; others the API refuses with a reason
  let body = how.body;
  if (body !== undefined && !(body instanceof Blob)) {
    body = typeof body === "string" ? body : JSON.stringify(body);
    headers.set("Content-Type", "application/json");
  }
  const text = query.toString();
  const signals = how.signal ? [how.signal] : [];
  if (!how.endless) signals.push(AbortSignal.timeout(patience));
  let response;
  try {
    response = await fetch(text ? `${path}?${text}` : path, { method: how.method ?? "GET", headers, body, signal: AbortSignal.any(signals), credentials: "same-origin" });
  } catch (err) {
    if (how.signal?.aborted) throw err;
    reachable.value = false;
    throw new Problem({ detail: "the dispatcher does not answer", retryable: true });
  }
  reachable.value = true;
  if (response.ok) {
    if (path.startsWith("/v1/") && path !== "/v1/caller") unable.value = "";
    return response;
  }
  const problem = await response.json().catch(() => ({ detail: response.statusText }));
  if (response.status === 401 && path !== "/console/sign-in") signedOut.value = true;
  if (response.status === 503 && problem.retryable) unable.value = String(problem.detail ?? "it is not ready");
  throw new Problem({ status: response.status, ...problem });
}

// The tabs of a browser share its cookie: what one does to it, the others look at.
const tabs = new BroadcastChannel("longshore");
tabs.onmessage = (/** @type {MessageEvent} */ e) => (e.data === "out" ? forget() : identify().catch(() => {}));

// What was shown is gone with who signed out; a session that has merely ended keeps it for who signs in again.
function forget() {
  caller.value = null;
  signedOut.value = true;
}

let identified = 0; // times that it was asked who the caller is

/** Finds out who is asking. An answer that another question, or a sign-in, has overtaken does not count. */
export async function identify() {
  const turn = ++identified;
  try {
    const who = await ask("/v1/caller");
    if (turn === identified) [caller.value, signedOut.value] = [who, false];
  } catch (err) {
    if (turn === identified) throw err;
  }
}

/** Exchanges a key or a JWT for a cookie. The page forgets it. @param {string} token */
export async function signIn(token) {
  const who = await ask("/console/sign-in", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
  identified++;
  caller.value = who;
  signedOut.value = false;
  tabs.postMessage("in");
}

/** Drops the cookie. */
export async function signOut() {
  await ask("/console/sign-out", { method: "POST" });
  forget();
  tabs.postMessage("out");
}

/** Whether a key or JWT is worth a request: what it could do. */
export const canSignOut = () => caller.value?.authentication ?? false;

/**
 * Follows server-sent events until the server ends them, the caller gives up, or the page is hidden; a connection that breaks is made
 * again after the last event, and onState is told why.
 * @param {string} path
 * @param {{query?: Record<string, any>, signal: AbortSignal, onFrame: (frame: {id: string, event: string, data: any}) => void, onState?: (state: "open" | "waiting", why?: Error) => void, after?: string}} how
 * @returns {Promise<void>} when there is no more
 */
export async function follow(path, how) {
  let after = how.after ?? "";
  let pause = 500;
  for (;;) {
    let why = /** @type {Error | undefined} */ (undefined);
    try {
      const headers = after ? { "Last-Event-ID": after } : undefined;
      const response = await send(path, { query: how.query, headers, signal: how.signal, endless: true });
      if (response.status === 204) return;
      how.onState?.("open");
      let last = "";
      for await (const frame of frames(response)) {
        pause = 500;
        if (frame.id) after = frame.id;
        last = frame.event;
        how.onFrame({ ...frame, data: JSON.parse(frame.data) });
      }
      if (last === "run_finished" || last === "tree_finished") return;
    } catch (err) {
      if (how.signal.aborted) return;
      if (err instanceof Problem && err.status >= 400 && err.status < 500 && err.status !== 429) throw err;
      why = /** @type {Error} */ (err);
    }
    if (how.signal.aborted) return;
    how.onState?.("waiting", why);
    await new Promise((done) => {
      const timer = setTimeout(done, pause + Math.random() * 250);
      how.signal.addEventListener("abort", () => { clearTimeout(timer); done(undefined); }, { once: true });
    });
    pause = Math.min(pause * 2, 10_000);
  }
}

/** The frames of a stream of server-sent events. @param {Response} response */
async function* frames(response) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).pipeThrough(/** @type {ReadableWritablePair<string, Uint8Array>} */ (new TextDecoderStream())).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      let end;
      while ((end = rest.indexOf("\n\n")) >= 0) {
        const frame = { id: "", event: "message", data: "" };
        for (const line of rest.slice(0, end).split("\n")) {
          const colon = line.indexOf(":");
          if (colon <= 0) continue;
          const text = line.slice(colon + 1).replace(/^ /, "");
          switch (line.slice(0, colon)) {
            case "id": frame.id = text; break;
            case "event": frame.event = text; break;
            case "data": frame.data += (frame.data ? "\n" : "") + text; break;
          }
        }
        rest = rest.slice(end + 2);
        if (frame.data) yield frame;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
