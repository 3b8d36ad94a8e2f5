// The tools that workers offer: what each does, who may use it, and how its calls went.
import { html } from "../app/html.js";
import { ask, may } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { place, refine, to } from "../app/route.js";
import { Empty, Facts, Failure, Field, Loaded, Page, Table } from "../app/ui.js";
import { count, duration, plain, things } from "../app/format.js";
import { Markdown, Raw } from "../app/text.js";

const week = 7 * 86_400_000;
const effects = /** @type {Record<string, string>} */ ({ read: "reads", idempotent: "may be repeated", once: "is made once" });

/** @param {{id: string}} props */
export function View({ id }) {
  const data = useLoad(async (signal) => {
    const [tools, agents, stats] = await Promise.all([ask("/v1/tools", { signal }), ask("/v1/agents", { signal }),
      ask("/v1/stats", { query: { by: "tool", since: new Date(Date.now() - week).toISOString() }, signal }).catch((error) => ({ tools: [], behind: 0, error }))]);
    const used = new Map((stats.tools ?? []).map((/** @type {any} */ u) => [u.tool, u]));
    const all = (tools.tools ?? []).map((/** @type {any} */ t) => ({ ...t, used: used.get(t.name), agents: (agents.agents ?? []).filter((/** @type {any} */ a) => (a.tools ?? []).includes(t.name)) }));
    return { all, behind: stats.behind ?? 0, error: /** @type {{error?: Error}} */ (stats).error };
  }, [], { every: 15_000 });
  if (!data.data) return html`<${Page} title="Tools"><${Loaded} of=${data} /><//>`;
  const { all, behind, error = data.error } = data.data;
  const failed = error && html`<${Failure} error=${error} retry=${data.reload} />`;
  return id ? html`<${Tool} name=${id} tool=${all.find((t) => t.name === id)} failed=${failed} />` : html`<${List} all=${all} behind=${behind} failed=${failed} />`;
}

/** @param {{all: any[], behind: number, failed: any}} props */
function List({ all, behind, failed }) {
  const q = (place.value.params.get("q") ?? "").toLowerCase();
  const rows = all.filter((t) => !q || t.name.toLowerCase().includes(q) || t.description.toLowerCase().includes(q));
  const address = (/** @type {any} */ t) => to(`/tools/${encodeURIComponent(t.name)}`);
  return html`<${Page} title="Tools" lead=${`The tools that the workers offer. Calls and failures are those of the last 7 days${behind ? `, without the last ${things(behind, "event")}: the index is behind` : ""}.`}>
    ${failed}<search class="filters"><${Field} label="Text" wide><input type="search" data-search value=${q} onInput=${(/** @type {any} */ e) => refine({ q: e.target.value })} /><//></search>
    ${rows.length === 0 ? html`<${Empty} title=${q ? "No tool matches" : "No worker offers tools"} command=${q ? undefined : "longshore worker"}>${q ? "" : "Start a worker; its environment says what it offers:"}<//>`
      : html`<${Table} label="Tools" rows=${rows} keyOf=${(/** @type {any} */ t) => t.name} href=${address} columns=${[
        { name: "Tool", cell: (/** @type {any} */ t) => html`<a class="id" href=${address(t)}>${plain(t.name, 64)}</a>` },
        { name: "What it does", class: "text", cell: (/** @type {any} */ t) => plain(t.description.split("\n")[0], 200) },
        { name: "A call", class: "whole", cell: (/** @type {any} */ t) => html`${effects[t.effect] ?? ""}${t.destructive ? ", destroys" : ""}` },
        { name: "Agents", class: "number", cell: (/** @type {any} */ t) => count(t.agents.length) },
        { name: "Workers", class: "number", cell: (/** @type {any} */ t) => html`${count(t.workers)}${t.differs ? " (differ)" : ""}` },
        { name: "Calls", class: "number", cell: (/** @type {any} */ t) => (t.used ? count(t.used.calls) : "") },
        { name: "Failed", class: "number", cell: (/** @type {any} */ t) => (t.used?.errors ? html`<span class="bad">${count(t.used.errors)}</span>` : "") },
        { name: "Time of a call", class: "number", cell: (/** @type {any} */ t) => (t.used?.calls ? duration(t.used.millis / t.used.calls) : "") },
      ]} />`}<//>`;
}

/** @param {{name: string, tool: any, failed: any}} props */
function Tool({ name, tool: t, failed }) {
  if (!t) return html`<${Page} title=${`Tool ${plain(name, 64)}`}><${Empty} title="No worker that answers offers this tool" /><//>`;
  return html`<${Page} title=${`Tool ${plain(name, 64)}`} actions=${html`<a class="button" href=${to("/tools")}>All tools</a>`}>
    ${failed}<${Facts} of=${[["A call", effects[t.effect]], ["Approval", t.destructive ? "waits for one, unless the agent says otherwise" : "as the agent says"], ["Offered", t.safeByDefault ? "always: it reaches nothing but the run" : "where the operator of a worker grants it"], ["Workers", count(t.workers)],
      ["Calls in 7 days", t.used ? count(t.used.calls) : "none"], ["Failed", t.used ? count(t.used.errors) : ""], ["Runs", t.used ? count(t.used.runs) : ""], ["Time of a call", t.used?.calls ? duration(t.used.millis / t.used.calls) : ""]]} />
    ${t.differs && html`<p class="bad">Workers describe it differently; this is how one of them does.</p>`}
    <h2>What models read</h2><div class="card">${t.description ? html`<${Markdown} text=${t.description} />` : html`<p class="faint">The workers do not say.</p>`}</div>
    <h2>Agents that have it</h2>${t.agents.length ? html`<p class="row">${t.agents.map((/** @type {any} */ a) => html`<a key=${a.name} href=${to(`/agents/${encodeURIComponent(a.name)}`)}>${plain(a.name, 64)}</a>${rule(a, name)}`)}</p>` : html`<p class="faint">None. ${may("author") ? "Name it in the tools of an agent." : ""}</p>`}
    <h2>Arguments</h2><div class="card">${t.inputSchema ? html`<${Raw} value=${t.inputSchema} />` : html`<p class="faint">The workers do not say.</p>`}</div>
  <//>`;
}

/** What the definition of an agent says about calls of a tool. @param {any} agent @param {string} tool */
function rule(agent, tool) {
  const always = (agent.approve?.always ?? []).includes(tool), never = (agent.approve?.never ?? []).includes(tool);
  return always ? html`<span class="faint">(each call is approved)</span>` : never ? html`<span class="faint">(without approval)</span>` : "";
}
