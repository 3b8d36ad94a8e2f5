// A run as a case of an evaluation suite: what to put into the file.
import { html, useState } from "../app/html.js";
import { Command, Dialog, Field } from "../app/ui.js";
import { yaml } from "../app/format.js";

const longest = 2000; // of a result that a case expects

/** @param {{run: import("../app/fold.js").Run, close: () => void}} props */
export function AsCase({ run, close }) {
  const [name, setName] = useState("");
  const input = typeof run.input === "string" ? run.input : "";
  const result = run.result?.result;
  const expected = typeof result === "string" && result.length <= longest ? `\n        equals: ${yaml(result)}` : "";
  const tools = run.steps.flatMap((s) => s.calls.map((c) => c.name));
  const text = `    - name: ${yaml(name || "case")}
      agent: ${yaml(run.agent)}
      input: ${yaml(input)}
      expect:
        status: ${run.status === "failed" || run.status === "cancelled" ? run.status : "completed"}${expected}${tools.length ? `\n        tools: [${tools.map((name) => yaml(name)).join(", ")}]` : ""}`;
  return html`<${Dialog} wide title="Add to a suite" onClose=${close}><div class="stack"><p class="faint">A suite is a file. Add this to its cases, remove the expectations that do not matter, and run it:</p>
    <${Field} label="Name of the case"><input value=${name} onInput=${(/** @type {any} */ e) => setName(e.target.value)} /><//>
    <${Command} text=${text} /><${Command} text="longshore eval suite.yaml" /></div><//>`;
}
