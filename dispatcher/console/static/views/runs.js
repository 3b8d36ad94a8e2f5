// The list of runs: live over the index. The address is the filter.
import { html, useEffect, useState } from "../app/html.js";
import { ask, may } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { place, refine, to } from "../app/route.js";
import { Dialog, Empty, Field, Loaded, Page, RunLink, Status, Table, Time, Typed } from "../app/ui.js";
import { Chosen } from "./many.js";
import { cost, count, duration, plain, things } from "../app/format.js";

const statuses = ["queued", "running", "waiting", "completed", "failed", "cancelled"];
const times = /** @type {[string, string][]} */ ([["1", "last hour"], ["", "last 24 hours"], ["168", "last 7 days"], ["720", "last 30 days"]]); // in hours
const page = 50;
const names = ["status", "agent", "label", "code", "q", "since", "session"];

/** @type {Record<string, {name: string, class?: string, cell: (r: API["RunSummary"]) => any}>} */
const all = {
  id: { name: "Run", cell: (r) => html`<${RunLink} id=${r.id} />` },
  status: { name: "Status", cell: (r) => html`<${Status} of=${r.status} />${r.code && html` <code>${plain(r.code, 40)}</code>`}` },
  agent: { name: "Agent", cell: (r) => plain(r.agent, 64) },
  input: { name: "Task", class: "text", cell: (r) => html`<span title=${plain(r.input, 400)}>${plain(r.input, 160)}</span>` },
  steps: { name: "Steps", class: "number", cell: (r) => (r.steps ? count(r.steps) : "") },
  tokens: { name: "Tokens", class: "number", cell: (r) => (r.tokenUsage?.total ? count(r.tokenUsage.total) : "") },
  cost: { name: "Cost", class: "number", cell: (r) => cost(r.cost) },
  time: { name: "Duration", class: "number", cell: (r) => took(r) },
  began: { name: "Queued", cell: (r) => html`<${Time} at=${r.queuedAt} />` },
  model: { name: "Model", cell: (r) => plain(r.model, 64) },
  labels: { name: "Labels", class: "text", cell: (r) => Object.entries(r.labels ?? {}).map(([k, v]) => plain(`${k}=${v}`, 80)).join(", ") },
  tools: { name: "Tool calls", class: "number", cell: (r) => (r.toolCalls ? count(r.toolCalls) : "") },
};
const usual = ["id", "status", "agent", "input", "steps", "tokens", "cost", "time", "began"];

const sinceOf = (/** @type {string} */ hours) => (Number(hours) > 0 ? new Date(Date.now() - Number(hours) * 3_600_000).toISOString() : "");

const took = (/** @type {API["RunSummary"]} */ r) => (r.startedAt && r.finishedAt ? duration(Date.parse(r.finishedAt) - Date.parse(r.startedAt)) : "");

export function View() {
  const params = place.value.params;
  const query = Object.fromEntries(names.map((n) => [n, params.get(n) ?? ""]));
  const after = params.get("after") ?? "";
  const columns = (params.get("columns")?.split(",") ?? usual).filter((c) => Object.hasOwn(all, c));
  const runs = useLoad((signal) => ask("/v1/tasks", { query: { ...query, since: sinceOf(query.since), limit: page, after }, signal }), [params.toString()], { every: after ? undefined : 3000 });
  const [chosen, setChosen] = useState(/** @type {string[]} */ ([]));
  const [choosing, setChoosing] = useState(false);
  useEffect(() => setChosen([]), [params.toString()]);
  const filtered = names.some((n) => query[n]);
  const mark = { name: "", class: "mark", cell: (/** @type {API["RunSummary"]} */ r) => html`<input type="checkbox" aria-label=${`Choose run ${r.id}`} checked=${chosen.includes(r.id)}
    onChange=${() => setChosen(chosen.includes(r.id) ? chosen.filter((id) => id !== r.id) : [...chosen, r.id])} />` };
  return html`<${Page} title="Runs" actions=${html`<a class="button" href=${to("/runs", { ...query, columns: params.get("columns") })} hidden=${!after}>Newest</a><button onClick=${() => setChoosing(true)}>Columns</button>`}>
    <${Filters} query=${query} />
    ${chosen.length > 0 && html`<${Chosen} ids=${chosen} rows=${runs.data?.runs ?? []} choose=${setChosen} reload=${runs.reload} />`}
    <${Loaded} of=${runs} rows=${10}>${(/** @type {API["RunList"]} */ list) => (!list.runs?.length
      ? html`<${Empty} title=${filtered ? "No run matches" : "No runs in the last 24 hours"} command=${filtered ? undefined : 'longshore submit "Write a haiku into haiku.txt"'}>${filtered ? html`<a href=${to("/runs")}>Show all</a>` : "Submit a task, and it is here at once:"}<//>`
      : html`<${Table} label="Runs" rows=${list.runs} keyOf=${(/** @type {API["RunSummary"]} */ r) => `${r.tenant}/${r.id}`} href=${(/** @type {API["RunSummary"]} */ r) => to(`/runs/${encodeURIComponent(r.id)}`)}
          columns=${[...(may("submit") ? [mark] : []), ...columns.map((c) => all[c])]} />
        <p class="row foot"><span class="faint">${list.found ? `${count(list.found)} found` : ""}${list.behind ? `; the index is behind by ${things(list.behind, "event")}` : ""}</span>
          ${list.next && html`<a class="button" href=${to("/runs", { ...query, columns: params.get("columns"), after: list.next })}>Older</a>`}</p>`)}<//>
    ${choosing && html`<${Dialog} title="Columns" onClose=${() => setChoosing(false)}>${Object.entries(all).map(([id, c]) => html`<label class="row" key=${id}><input type="checkbox" checked=${columns.includes(id)}
      onChange=${() => refine({ columns: Object.keys(all).filter((k) => (k === id ? !columns.includes(id) : columns.includes(k))).join(",") })} /> ${c.name}</label>`)}<//>`}
  <//>`;
}

/** @param {{query: Record<string, string>}} props */
function Filters({ query }) {
  const change = (/** @type {string} */ name) => (/** @type {Event} */ e) => refine({ [name]: /** @type {HTMLInputElement} */ (e.target).value.trim(), after: "" });
  return html`<search class="filters">
    <${Field} label="Text" wide><${Typed} type="search" data-search value=${query.q} placeholder="words of task or result" onChange=${change("q")} /><//>
    <${Field} label="Status"><select value=${query.status} onChange=${change("status")}><option value="">any</option>${statuses.map((s) => html`<option key=${s}>${s}</option>`)}</select><//>
    <${Field} label="Agent"><${Typed} value=${query.agent} spellcheck=${false} onChange=${change("agent")} /><//>
    <${Field} label="Label"><${Typed} value=${query.label} placeholder="key=value" spellcheck=${false} onChange=${change("label")} /><//>
    <${Field} label="Error code"><${Typed} value=${query.code} spellcheck=${false} onChange=${change("code")} /><//>
    <${Field} label="Submitted"><select value=${query.since} onChange=${change("since")}>${times.map(([v, n]) => html`<option key=${v} value=${v}>${n}</option>`)}</select><//>
  </search>`;
}
