// What tenants, agents and providers may use, and what is paused.
import { html, useState } from "../app/html.js";
import { ask } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { Act, Dialog, Empty, Field, Loaded, Page, Table, Time } from "../app/ui.js";
import { cost, count, plain } from "../app/format.js";

const fields = /** @type {["maxRunning" | "maxQueued" | "perMinute" | "costPerDay" | "costPerMonth" | "weight", string][]} */ ([["maxRunning", "Runs at once"], ["maxQueued", "Runs in the queue"], ["perMinute", "Submits a minute"], ["costPerDay", "US dollars a day"], ["costPerMonth", "US dollars a month"], ["weight", "Weight in the queue"]]);

const mostUsages = 50; // each is a request

export function View() {
  const quotas = useLoad(async (signal) => {
    const list = await ask("/v1/quotas", { signal });
    let error = /** @type {Error | undefined} */ (undefined);
    const used = (/** @type {any} */ q) => ask(`/v1/quotas/${q.kind}/${encodeURIComponent(q.name)}`, { signal }) // the list has no usage
      .catch((e) => { if (e.status !== 404) error ??= e; return q; });
    const all = await Promise.all((list.quotas ?? []).map((/** @type {any} */ q, /** @type {number} */ i) => (q.kind === "tenant" && i < mostUsages ? used(q) : q)));
    return { ...list, quotas: all, error };
  }, [], { every: 10_000 });
  const pauses = useLoad((signal) => ask("/v1/pauses", { signal }), [], { every: 5000 });
  const [edit, setEdit] = useState(/** @type {API["QuotaState"] | null} */ (null));
  const [pause, setPause] = useState(false);
  return html`<${Page} title="Quotas and pauses" actions=${html`<button onClick=${() => setPause(true)}>Pause something</button><button onClick=${() => setEdit({ kind: "tenant", name: "", quota: {}, revision: 0 })}>New quota</button>`}>
    <h2>Paused</h2>
    <${Loaded} of=${pauses} rows=${1}>${(/** @type {API["PauseList"]} */ l) => (!l.pauses?.length ? html`<p class="faint">Nothing is paused.</p>` : html`<${Table} label="Pauses" rows=${l.pauses} keyOf=${(/** @type {API["PausedThing"]} */ p) => `${p.kind} ${p.name}`} columns=${[
      { name: "What", cell: (/** @type {API["PausedThing"]} */ p) => html`${p.kind} <b>${plain(p.name, 100)}</b>` },
      { name: "Reason", cell: (/** @type {API["PausedThing"]} */ p) => plain(p.reason, 400) },
      { name: "By", cell: (/** @type {API["PausedThing"]} */ p) => plain(p.by, 100) },
      { name: "Since", cell: (/** @type {API["PausedThing"]} */ p) => html`<${Time} at=${p.at} />` },
      { name: "", cell: (/** @type {API["PausedThing"]} */ p) => html`<${Act} needs="operate-fleet" act=${async () => { await ask(`/v1/pauses/${p.kind}/${encodeURIComponent(p.name)}`, { method: "DELETE" }); pauses.reload(); }}>Resume<//>` },
    ]} />`)}<//>
    ${pauses.settled && html`<h2>Quotas</h2>
    <${Loaded} of=${{ ...quotas, error: quotas.error ?? quotas.data?.error }}>${(/** @type {API["QuotaList"]} */ l) => (!l.quotas?.length ? html`<${Empty} title="No quotas" command="longshore quotas set tenant acme --cost-per-day 10">Without a quota, a tenant has no limits:<//>` : html`<${Table} label="Quotas" rows=${l.quotas} keyOf=${(/** @type {API["QuotaState"]} */ q) => `${q.kind} ${q.name}`} columns=${[
      { name: "Quota of", cell: (/** @type {API["QuotaState"]} */ q) => html`${q.kind} <b>${plain(q.name, 100)}</b>` },
      { name: "Limits", cell: (/** @type {API["QuotaState"]} */ q) => fields.filter(([f]) => q.quota[f] !== undefined).map(([f, n]) => `${n}: ${q.quota[f]}`).join("; ") },
      { name: "Today", class: "number", cell: (/** @type {API["QuotaState"]} */ q) => q.usage && html`${cost(q.usage.costToday)}${q.quota.costPerDay ? ` of ${cost(q.quota.costPerDay)}` : ""}` },
      { name: "This month", class: "number", cell: (/** @type {API["QuotaState"]} */ q) => q.usage && cost(q.usage.costThisMonth) },
      { name: "Queued", class: "number", cell: (/** @type {API["QuotaState"]} */ q) => q.usage && count(q.usage.queued) },
      { name: "", cell: (/** @type {API["QuotaState"]} */ q) => html`<button onClick=${() => setEdit(q)}>Change</button>` },
    ]} />`)}<//>`}
    ${edit && html`<${Edit} of=${edit} close=${() => { setEdit(null); quotas.reload(); }} />`}
    ${pause && html`<${Pause} close=${() => { setPause(false); pauses.reload(); }} />`}
  <//>`;
}

const kinds = ["tenant", "agent", "provider"];

/** @param {{of: API["QuotaState"], close: () => void}} props */
function Edit({ of, close }) {
  const [kind, setKind] = useState(of.kind);
  const [name, setName] = useState(of.name);
  const [quota, setQuota] = useState(/** @type {Record<string, string | number | undefined>} */ (Object.fromEntries(fields.map(([f]) => [f, of.quota[f]]))));
  const act = async () => {
    const body = Object.fromEntries(fields.filter(([f]) => quota[f] !== undefined && quota[f] !== "").map(([f]) => [f, Number(quota[f])]));
    return ask(`/v1/quotas/${kind}/${encodeURIComponent(name)}`, { method: "PUT", query: of.revision ? { ifRevision: of.revision } : {}, body });
  };
  return html`<${Dialog} title="Quota" onClose=${close}><form onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
    ${!of.revision && html`<${Field} label="Kind"><select value=${kind} onChange=${(/** @type {Edited} */ e) => setKind(e.target.value)}>${kinds.map((k) => html`<option>${k}</option>`)}</select><//><${Field} label="Name"><input value=${name} spellcheck=${false} onInput=${(/** @type {Edited} */ e) => setName(e.target.value)} /><//>`}
    ${fields.map(([f, n]) => html`<${Field} key=${f} label=${n} hint="empty: no limit"><input type="number" min="0" step="any" value=${quota[f] ?? ""} onInput=${(/** @type {Edited} */ e) => setQuota({ ...quota, [f]: e.target.value })} /><//>`)}
    <div class="actions"><button type="button" onClick=${close}>Back</button><${Act} class="main" needs="administer" disabled=${!name} done="Stored" act=${act} then=${close}>Store<//></div></form><//>`;
}

/** @param {{close: () => void}} props */
function Pause({ close }) {
  const [kind, setKind] = useState("tenant");
  const [name, setName] = useState("");
  const [reason, setReason] = useState("");
  return html`<${Dialog} title="Pause" onClose=${close}><form onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
    <${Field} label="Kind"><select value=${kind} onChange=${(/** @type {Edited} */ e) => setKind(e.target.value)}>${kinds.map((k) => html`<option>${k}</option>`)}</select><//>
    <${Field} label="Name"><input value=${name} spellcheck=${false} onInput=${(/** @type {Edited} */ e) => setName(e.target.value)} /><//>
    <${Field} label="Reason"><input value=${reason} onInput=${(/** @type {Edited} */ e) => setReason(e.target.value)} /><//>
    <div class="actions"><button type="button" onClick=${close}>Back</button><${Act} class="danger" needs="operate-fleet" disabled=${!name} act=${() => ask("/v1/pauses", { method: "POST", body: { kind, name, ...(reason ? { reason } : {}) } })} then=${close}>Pause<//></div></form><//>`;
}
