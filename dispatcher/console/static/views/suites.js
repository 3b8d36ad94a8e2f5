// Evaluation suites: what their runs came to, by revision of the agent. Suites are files; their runs carry labels.
import { html, useMemo } from "../app/html.js";
import { ask } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { to } from "../app/route.js";
import { Empty, Loaded, Page, RunLink, Status, Table, Time } from "../app/ui.js";
import { cost, count, duration, plain } from "../app/format.js";

const span = 30 * 86_400_000; // in milliseconds
const most = 1000; // runs that are looked at

const since = () => new Date(Date.now() - span).toISOString();

/** Runs of suites, or of one of them, newest first. @param {AbortSignal} signal @param {string} [suite] */
async function runsOf(signal, suite) {
  const runs = /** @type {any[]} */ ([]);
  let after = "";
  do {
    const page = await ask("/v1/tasks", { query: { label: suite ? `evalSuite=${suite}` : undefined, since: since(), limit: 200, after }, signal });
    runs.push(...(page.runs ?? []).filter((/** @type {any} */ r) => r.labels?.evalSuite));
    after = page.next ?? "";
  } while (after && runs.length < most);
  return runs;
}

/** The revisions of agents, newest first, by name: the index of runs does not hold which one a run had. @param {AbortSignal} signal @param {any[]} runs */
async function revisionsOf(signal, runs) {
  const names = [...new Set(runs.map((r) => r.agent))];
  return new Map(await Promise.all(names.map(async (name) => /** @type {[string, any[]]} */ ([name,
    await ask(`/v1/agents/${encodeURIComponent(name)}/revisions`, { signal }).then((h) => [...h.changes].sort((a, b) => b.revision - a.revision), (e) => (e.status === 404 ? [] : Promise.reject(e)))]))));
}

/** The agent of a run and its revision: the one that was stored when the run was submitted. @param {any} r @param {Map<string, any[]>} revisions */
function revisionOf(r, revisions) {
  const change = (revisions.get(r.agent) ?? []).find((c) => Date.parse(c.at) <= Date.parse(r.startedAt ?? r.queuedAt));
  return change ? `${r.agent}@${change.revision}` : r.agent;
}

/** @param {{id: string}} props */
export function View({ id }) {
  return id ? html`<${Suite} name=${id} />` : html`<${List} />`;
}

function List() {
  const runs = useLoad((signal) => runsOf(signal), []);
  const address = (/** @type {any} */ s) => to(`/suites/${encodeURIComponent(s.name)}`);
  return html`<${Page} title="Evaluation suites" lead="Suites that ran here in the last 30 days, and how their runs went. What passed is in the report of longshore eval.">
    <${Loaded} of=${runs}>${(/** @type {any[]} */ all) => (all.length === 0 ? html`<${Empty} title="No suite ran here" command="longshore eval suite.yaml">A suite is a file of tasks, with what is expected of their results. “Add to a suite” on the page of a run makes a case of it.<//>`
      : html`<${Table} label="Suites" rows=${groups(all, (r) => r.labels.evalSuite)} keyOf=${(/** @type {any} */ s) => s.name} href=${address} columns=${[
        { name: "Suite", cell: (/** @type {any} */ s) => html`<a href=${address(s)}>${plain(s.name, 64)}</a>` }, ...figures,
      ]} />`)}<//><//>`;
}

/** @param {{name: string}} props */
function Suite({ name }) {
  const runs = useLoad(async (signal) => {
    const all = await runsOf(signal, name);
    const revisions = await revisionsOf(signal, all);
    return all.map((r) => ({ ...r, ran: revisionOf(r, revisions) }));
  }, [name], { every: 10_000 });
  return html`<${Page} title=${`Suite ${plain(name, 64)}`} actions=${html`<a class="button" href=${to("/suites")}>All suites</a><a class="button" href=${to("/runs", { label: `evalSuite=${name}`, since: "720" })}>Its runs</a>`}>
    <${Loaded} of=${runs}>${(/** @type {any[]} */ all) => html`<${Results} all=${all} />`}<//><//>`;
}

/** @param {{all: any[]}} props */
function Results({ all }) {
  const revisions = useMemo(() => groups(all, (r) => r.ran), [all]);
  const cases = useMemo(() => [...new Set(all.map((r) => r.labels.evalCase))].sort(), [all]);
  if (all.length === 0) return html`<${Empty} title="No run of this suite in the last 30 days" />`;
  return html`<h2>By revision</h2>
    <${Table} label="Results by revision" rows=${revisions} keyOf=${(/** @type {any} */ g) => g.name} columns=${[{ name: "Agent", cell: (/** @type {any} */ g) => plain(g.name, 80) }, ...figures]} />
    <h2>By case</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="Cases"><table><thead><tr><th>Case</th>${revisions.slice(0, 6).map((g) => html`<th key=${g.name}>${plain(g.name, 80)}</th>`)}</tr></thead><tbody>
      ${cases.map((c) => html`<tr key=${c}><th scope="row">${plain(c, 100)}</th>${revisions.slice(0, 6).map((g) => html`<td key=${g.name}>${g.runs.filter((/** @type {any} */ r) => r.labels.evalCase === c).slice(0, 5).map((/** @type {any} */ r) => html`<${RunLink} key=${r.id} id=${r.id}><${Status} of=${r.status} /><//> `)}</td>`)}</tr>`)}</tbody></table></div>`;
}

/** @type {{name: string, class?: string, cell: (g: any) => any}[]} */
const figures = [
  { name: "Runs", class: "number", cell: (g) => count(g.runs.length) },
  { name: "Completed", class: "number", cell: (g) => `${Math.round((100 * g.completed) / g.runs.length)}%` },
  { name: "Tokens of a run", class: "number", cell: (g) => count(Math.round(g.tokens / g.runs.length)) },
  { name: "Cost", class: "number", cell: (g) => cost(g.cost) },
  { name: "Time of a run", class: "number", cell: (g) => (g.ended ? duration(g.millis / g.ended) : "") },
  { name: "Last", cell: (g) => html`<${Time} at=${g.last} />` },
];

/** Runs by a name, as they came: the newest first. @param {any[]} runs @param {(r: any) => string} nameOf */
function groups(runs, nameOf) {
  const found = new Map();
  for (const r of runs) {
    const name = nameOf(r);
    const g = found.get(name) ?? { name, runs: [], completed: 0, tokens: 0, cost: 0, millis: 0, ended: 0, last: r.queuedAt };
    found.set(name, g);
    g.runs.push(r);
    if (r.status === "completed") g.completed++;
    g.tokens += r.tokenUsage?.total ?? 0;
    g.cost += r.cost ?? 0;
    if (r.startedAt && r.finishedAt) { g.millis += Date.parse(r.finishedAt) - Date.parse(r.startedAt); g.ended++; }
  }
  return [...found.values()];
}
