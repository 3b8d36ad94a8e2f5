// API keys: make, list, revoke.
import { html, useState } from "../app/html.js";
import { ask, caller } from "../app/api.js";
import { useLoad } from "../app/load.js";
import { Act, Command, Dialog, Empty, Field, Loaded, Page, Table, Time } from "../app/ui.js";
import { plain } from "../app/format.js";

const roles = ["viewer", "submitter", "approver", "operator", "author", "granter", "admin"];

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
      <div class="actions"><button onClick=${() => setRevoke(null)}>Back</button><${Act} class="danger" needs="manage-keys" done="Revoked" act=${async () => { await ask(`/v1/keys/${revoke.id}`, { method: "DELETE" }); setRevoke(null); list.reload(); }}>Revoke<//></div><//>`}
  <//>`;
}

/** @param {{close: () => void}} props */
function Make({ close }) {
  const [name, setName] = useState("");
  const [tenant, setTenant] = useState(caller.value?.tenant === "*" ? "" : caller.value?.tenant ?? "");
  const [chosen, setChosen] = useState(["viewer"]);
  const [key, setKey] = useState("");
  if (key) return html`<${Dialog} title="The new key" onClose=${close}><p>Copy it now: it is not stored, and not shown again.</p><${Command} text=${key} /></>`;
  return html`<${Dialog} title="New key" onClose=${close}><form onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
    <${Field} label="Name"><input value=${name} onInput=${(/** @type {Edited} */ e) => setName(e.target.value)} /><//>
    <${Field} label="Tenant" hint="*: all tenants"><input value=${tenant} spellcheck=${false} onInput=${(/** @type {Edited} */ e) => setTenant(e.target.value)} /><//>
    <fieldset><legend>Roles</legend>${roles.map((r) => html`<label class="row" key=${r}><input type="checkbox" checked=${chosen.includes(r)} onChange=${() => setChosen(chosen.includes(r) ? chosen.filter((x) => x !== r) : [...chosen, r])} /> ${r}</label>`)}</fieldset>
    <div class="actions"><button type="button" onClick=${close}>Back</button><${Act} class="main" needs="manage-keys" disabled=${!chosen.length} act=${async () => setKey((await ask("/v1/keys", { method: "POST", body: { roles: chosen, ...(name ? { name } : {}), ...(tenant ? { tenant } : {}) } })).key)}>Make<//></div></form><//>`;
}
