// An agent as it is tried before it is stored: a draft, under a name of its own, so that runs of others do not get it.
import { Problem, ask } from "./api.js";
import { useCheck } from "./editor.js";
import { yaml } from "./format.js";

const longest = 64;

/** How long a draft stays, and to what its end is rounded so that the same draft is the same revision, in milliseconds. */
const stays = 24 * 3_600_000, hour = 3_600_000;

/** The name of the draft of an agent. @param {string} agent */
export const draftOf = (agent) => (isDraft(agent) ? agent : `${agent.slice(0, longest - "_draft".length)}_draft`);

/** @param {string} agent */
export const isDraft = (agent) => agent.endsWith("_draft");

/** A definition as it is edited: without what the dispatcher adds. @param {any} definition */
export function editable(definition) {
  const copy = { ...definition };
  delete copy.revision;
  return copy;
}

/**
 * Stores a draft of an agent.
 * @param {any} definition the agent as it is to be
 * @returns {Promise<{agent: string, revision: number}>} what runs of it name
 */
export async function storeDraft(definition) {
  const name = draftOf(definition.name);
  const done = await ask(`/v1/agents/${encodeURIComponent(name)}`, { method: "PUT", body: { ...editable(definition), name, expires: new Date(Math.ceil((Date.now() + stays) / hour) * hour).toISOString() } });
  return { agent: name, revision: done.revision };
}

/**
 * A stored agent as a person edits it: the YAML file that the agents folder could have, or JSON where the dispatcher cannot read it as one.
 * @param {any} definition @param {AbortSignal} signal
 */
export async function written(definition, signal) {
  const text = JSON.stringify(editable(definition));
  const verdict = await ask("/v1/agents:validate", { method: "POST", body: { text, format: true }, signal }).catch((err) => {
    if (err instanceof Problem && err.status === 400) return undefined; // it is too large to be checked
    throw err;
  });
  return verdict?.text ?? yaml(editable(definition), 2);
}

/** Has the dispatcher check a definition while it is written. @param {string} name that it must have @param {string | null} text null: it was not changed */
export const useAgentCheck = (name, text) => useCheck(text, (written, signal) => ask("/v1/agents:validate", { method: "POST", body: { text: written, name }, signal }));
