// API keys: make, list, revoke.
import { html, useState } from "../app/html.js";
import { ask, caller } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { tenant as chosenTenant } from "../app/route.js";
import { Act, Command, Dialog, Empty, Field, Loaded, Page, Table, Time } from "../app/ui.js";
import { plain } from "../app/format.js";

/** What a role may do, and whether it is within one tenant, for all of them, or either. @type {{role: string, does: string, within?: "one" | "all"}[]} */
const roles = [
  { role: "viewer", does: "sees runs and the fleet" },
  { role: "submitter", does: "submits tasks, and steers and cancels runs", within: "one" },
  { role: "approver", does: "approves and denies calls, and answers questions", within: "one" },
  { role: "operator", does: "submits and operates: pauses, dead letters, workers" },
  { role: "author", does: "changes prompts and the texts of agents", within: "all" },
  { role: "granter", does: "changes agents, also their tools and limits", within: "all" },
  { role: "admin", does: "everything" },
];

export function View() {
  const list = useLoad(async (signal) => (caller.value?.authentication ? ask("/v1/keys", { signal }) : { keys: [] }), []);
  const [make, setMake] = useState(false);
  const [revoke, setRevoke] = useState(/** @type {API["APIKey"] | null} */ (null));
  if (!caller.value?.authentication) return html`<${Page} title="API keys"><${Empty} title="Authentication is disabled" command="LONGSHORE_AUTH=on longshore dispatcher">Everyone who reaches this address may do everything. With authentication each request needs a key, and keys are made here:<//><//>`;
  return html`<${Page} title="API keys" actions=${html`<button class="main" onClick=${() => setMake(true)}>New key</button>`}>
    <${Loaded} of=${list}>${(/** @type {API["KeyList"]} */ l) => (!l.keys?.length ? html`<${Empty} title="No keys" command="longshore keys api create --role admin --tenant '*'">With LONGSHORE_AUTH=on every request needs one:<//>` : html`<${Table} label="API keys" rows=${l.keys} keyOf=${(/** @type {API["APIKey"]} */ k) => k.id} columns=${[
      { name: "Key", cell: (/** @type {API["APIKey"]} */ k) => html`<span class="id">${k.id}</span> ${plain(k.name, 100)}` },
      { name: "Tenant", cell: (/** @type {API["APIKey"]} */ k) => (k.tenant === "*" ? "all" : plain(k.tenant, 64)) },
      { name: "Roles", cell: (/** @type {API["APIKey"]} */ k) => k.roles?.join(", ") },
      { name: "Made", cell: (/** @type {API["APIKey"]} */ k) => html`<${Time} at=${k.created} />${k.by ? ` by ${plain(k.by, 100)}` : ""}` },
      { name: "Expires", cell: (/** @type {API["APIKey"]} */ k) => (k.expires ? html`<${Time} at=${k.expires} />` : "never") },
      { name: "", cell: (/** @type {API["APIKey"]} */ k) => html`<button onClick=${() => setRevoke(k)}>Revoke</button>` },
    ]} />`)}<//>
    ${make && html`<${Make} close=${() => { setMake(false); list.reload(); }} />`}
    ${revoke && html`<${Dialog} title="Revoke a key" onClose=${() => setRevoke(null)}><p>Requests with the key ${revoke.id} ${plain(revoke.name, 100)} are refused within five seconds. ${revoke.id === caller.value?.id ? html`<b class="bad">You are signed in with it.</b>` : ""}</p>
      <div class="actions"><button onClick=${() => setRevoke(null)}>Back</button><${Act} class="danger" needs="manage-keys" done="Revoked" act=${async () => { await ask(`/v1/keys/${revoke.id}`, { method: "DELETE" }); list.reload(); }} then=${() => setRevoke(null)}>Revoke<//></div><//>`}
  <//>`;
}

/** A key: its roles are those that the API takes for its tenant. @param {{close: () => void}} props */
function Make({ close }) {
  const only = chosenTenant.value || (caller.value?.tenant === "*" ? "" : caller.value?.tenant ?? ""); // the API makes none for others
  const [name, setName] = useState("");
  const [typed, setTyped] = useState("default");
  const [ticked, setTicked] = useState(["viewer"]);
  const [key, setKey] = useState("");
  if (key) return html`<${Dialog} title="The new key" onClose=${close}><p>Copy it now: it is not stored and will not be shown again.</p><${Command} text=${key} /></>`;
  const tenant = only || typed.trim(), all = tenant === "*";
  const offered = roles.filter((r) => !r.within || r.within === (all ? "all" : "one"));
  const chosen = offered.map((r) => r.role).filter((r) => ticked.includes(r));
  const wrong = !/^([A-Za-z0-9_-]{1,64}|\*)$/.test(tenant);
  return html`<${Dialog} title="New key" onClose=${close}><form onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
    <${Field} label="Name" hint="Who or what will use it, such as ci."><input value=${name} onInput=${(/** @type {Edited} */ e) => setName(e.target.value)} /><//>
    ${only ? html`<p>It is for the tenant <b>${plain(only, 64)}</b>.</p>`
      : html`<${Field} label="Tenant" hint="Its name, or * for all tenants." error=${wrong ? "Use 1 to 64 characters of A-Z a-z 0-9 _ -, or *." : ""}><input value=${typed} spellcheck=${false} onInput=${(/** @type {Edited} */ e) => setTyped(e.target.value)} /><//>`}
    <fieldset><legend>Roles</legend>${offered.map(({ role, does }) => html`<label class="row" key=${role}><input type="checkbox" checked=${ticked.includes(role)} onChange=${() => setTicked(ticked.includes(role) ? ticked.filter((x) => x !== role) : [...ticked, role])} /> <span>${role}</span> <small class="faint">${does}</small></label>`)}
      <p class="faint">${all ? "Submitters and approvers act within one tenant: a key for all tenants cannot have these roles." : "Agents and prompts belong to all tenants: only a key for all tenants (*) can have the roles author and granter."}</p></fieldset>
    <div class="actions"><button type="button" onClick=${close}>Back</button><${Act} class="main" needs="manage-keys" disabled=${!chosen.length || wrong} title=${chosen.length ? "" : "Choose a role first."} act=${() => ask("/v1/keys", { method: "POST", body: { tenant, roles: chosen, ...(name ? { name } : {}) } })} then=${(/** @type {API["NewKey"]} */ made) => setKey(made.key)}>Make<//></div></form><//>`;
}
