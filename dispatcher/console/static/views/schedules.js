// Schedules, with their next times.
import { html } from "../app/html.js";
import { ask, make } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { to } from "../app/route.js";
import { Act, Empty, Facts, Loaded, Page, RunLink, Status, Table, Time } from "../app/ui.js";
import { exact, plain } from "../app/format.js";
import { Raw } from "../app/text.js";

/** @param {{id: string}} props */
export function View({ id }) {
  return id ? html`<${Schedule} name=${id} />` : html`<${List} />`;
}

const when = (/** @type {{cron?: string, every?: string, timeZone?: string}} */ s) => plain(s.cron ? `${s.cron} ${s.timeZone ?? ""}` : s.every ? `every ${s.every}` : "", 100);

function List() {
  const list = useLoad((signal) => ask("/v1/schedules", { signal }), [], { every: 10_000 });
  return html`<${Page} title="Schedules">
    <${Loaded} of=${list}>${(/** @type {API["ScheduleList"]} */ l) => (!l.schedules?.length ? html`<${Empty} title="No schedules" command="longshore schedules apply --file schedule.yaml">A schedule submits a task at set times:<//>` : html`<${Table} label="Schedules" rows=${l.schedules} keyOf=${(/** @type {API["ScheduleSummary"]} */ s) => s.name} href=${(/** @type {API["ScheduleSummary"]} */ s) => to(`/schedules/${encodeURIComponent(s.name)}`)} columns=${[
      { name: "Schedule", cell: (/** @type {API["ScheduleSummary"]} */ s) => html`<a href=${to(`/schedules/${encodeURIComponent(s.name)}`)}>${plain(s.name, 64)}</a> ${s.paused && html`<${Status} of="paused" />`}` },
      { name: "Agent", cell: (/** @type {API["ScheduleSummary"]} */ s) => plain(s.agent, 64) },
      { name: "When", cell: (/** @type {API["ScheduleSummary"]} */ s) => html`<code>${when(s)}</code>` },
      { name: "Next", cell: (/** @type {API["ScheduleSummary"]} */ s) => html`<${Time} at=${s.next} />` },
      { name: "Last", cell: (/** @type {API["ScheduleSummary"]} */ s) => s.last && html`${plain(s.last.outcome, 40)} <${Time} at=${s.last.at} /> ${s.last.run && html`<${RunLink} id=${s.last.run} />`}` },
    ]} />`)}<//><//>`;
}

/** @param {{name: string}} props */
function Schedule({ name }) {
  const path = /** @type {const} */ (`/v1/schedules/${encodeURIComponent(name)}`);
  const one = useLoad((signal) => ask(path, { signal }), [name], { every: 10_000 });
  const hold = (/** @type {"pause" | "resume"} */ what) => async () => { await ask(`${path}/${what}`, { method: "POST" }); one.reload(); };
  const run = async () => { await make(`${path}/run`); one.reload(); };
  return html`<${Page} title=${`Schedule ${plain(name, 64)}`} actions=${one.data && html`
      <${Act} needs="operate" act=${hold(one.data.schedule.paused ? "resume" : "pause")}>${one.data.schedule.paused ? "Resume" : "Pause"}<//>
      <${Act} class="main" needs="operate" done="Its task was submitted" act=${run}>Run now<//>`}>
    <${Loaded} of=${one}>${(/** @type {API["ScheduleStatus"]} */ s) => html`<${Facts} of=${[["When", html`<code>${when(s.schedule)}</code>`], ["Overlap", plain(s.schedule.overlap, 40)], ["Last", s.last && html`${plain(s.last.outcome, 40)} ${s.last.run && html`<${RunLink} id=${s.last.run} />`} ${plain(s.last.reason, 200)}`], ["Paused", s.schedule.paused ? "yes" : ""]]} />
      <h2>Next times</h2><ul>${(s.next ?? []).map((/** @type {string} */ t) => html`<li key=${t}>${exact(t)} (<${Time} at=${t} />)</li>`)}</ul><h2>Task</h2><div class="card"><${Raw} value=${s.schedule.task} /></div>`}<//><//>`;
}
