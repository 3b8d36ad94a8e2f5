// Where the time and the money went: a bar for each model call, tool call, wait and takeover.
import { html, useMemo, useState } from "../app/html.js";
import { cost, duration, plain, things } from "../app/format.js";
import { Rows } from "../app/rows.js";
import { to } from "../app/route.js";
import { now } from "../app/ui.js";

const longWait = 30_000; // waits above it are folded to this length, in milliseconds

/** @param {{id: string, run: import("../app/fold.js").Run}} props */
export function Timeline({ id, run }) {
  const [chosen, setChosen] = useState("");
  const [zoom, setZoom] = useState(1);
  const end = run.finished ? Date.parse(run.finished) : now.value;
  const bars = useMemo(() => barsOf(run, end), [run.events, Math.floor(end / 1000)]);
  if (!bars.length) return html`<p class="faint">Nothing has happened yet.</p>`;
  const squeeze = squeezed(bars);
  const from = squeeze(bars[0].from);
  const span = Math.max(1, squeeze(bars.reduce((t, b) => Math.max(t, b.to), 0)) - from);
  const totals = { model: 0, tool: 0, wait: 0 };
  for (const b of bars) if (b.kind in totals) totals[/** @type {"model" | "tool" | "wait"} */ (b.kind)] += b.to - b.from;
  const at = bars.find((b) => b.key === chosen);
  return html`<p class="row"><span><b>${duration(totals.model)}</b> in models</span><span><b>${duration(totals.tool)}</b> in tools</span><span><b>${duration(totals.wait)}</b> waiting</span>
      <span class="row"><button aria-label="Zoom out" disabled=${zoom <= 1} onClick=${() => setZoom(Math.max(1, zoom / 2))}>−</button><button aria-label="Zoom in" disabled=${zoom >= 64} onClick=${() => setZoom(zoom * 2)}>+</button></span></p>
    <div class="scroll" tabindex="0" role="region" aria-label="Timeline"><div class="timeline" style=${{ width: `${zoom * 100}%` }}><${Rows} of=${bars} keyOf=${(/** @type {Bar} */ b) => b.key} usual=${25} row=${(/** @type {Bar} */ b) => html`<div class="lane">
      <button class=${`bar ${b.kind} ${b.bad ? "bad" : ""}`} aria-pressed=${b.key === chosen} style=${{ left: `${((squeeze(b.from) - from) / span) * 100}%`, width: `${Math.max(0.2, ((squeeze(b.to) - squeeze(b.from)) / span) * 100)}%` }}
        onClick=${() => setChosen(b.key === chosen ? "" : b.key)} title=${`${b.label} ${duration(b.to - b.from)}`}>${b.label} ${duration(b.to - b.from)}</button></div>`} /></div></div>
    ${at && html`<div class="card chosen" role="status"><b>${at.label}</b> ${duration(at.to - at.from)} ${at.tokens ? things(at.tokens, "token") : ""} ${at.cost ? cost(at.cost) : ""} ${at.step && html`<a href=${`${to(`/runs/${encodeURIComponent(id)}`)}#${at.step}`}>${at.step}</a>`}<p class="faint">${plain(at.detail, 400)}</p></div>`}`;
}

/** @typedef {{key: string, kind: string, label: string, from: number, to: number, bad?: boolean, tokens?: number, cost?: number, step?: string, detail?: string}} Bar */

/** @param {import("../app/fold.js").Run} run @param {number} end @returns {Bar[]} */
function barsOf(run, end) {
  /** @type {Bar[]} */
  const bars = [];
  for (const s of run.steps) {
    if (s.replied || s.writing) {
      const to = s.replied ? Date.parse(s.replied) : end;
      const from = s.started ? Date.parse(s.started) : to - (s.millis ?? 0);
      bars.push({ key: `${s.id} model`, kind: "model", label: plain(s.model ?? "model", 60), from: Math.min(from, to), to, tokens: s.usage?.total, cost: s.cost, step: s.id, detail: s.text.slice(0, 200) });
    }
    for (const c of s.calls) {
      if (!c.started && !c.ended) continue;
      const to = c.ended ? Date.parse(c.ended) : end;
      const from = c.started ? Date.parse(c.started) : to - (c.millis ?? 0);
      bars.push({ key: `${s.id} ${c.id}`, kind: "tool", label: plain(c.name, 60), from, to, bad: c.error, step: s.id, detail: plain(c.args, 200) });
    }
  }
  for (const [i, m] of run.moves.entries()) {
    bars.push({ key: `move ${i}`, kind: "wait", label: m.kind === "takeover" ? "taken over" : `waits: ${plain(m.reason, 40)}`, from: Date.parse(m.from), to: m.to ? Date.parse(m.to) : end, detail: m.reason });
  }
  return bars.sort((a, b) => a.from - b.from);
}

/** A scale on which long waits take no more room than short ones. @param {Bar[]} bars */
function squeezed(bars) {
  const folds = bars.filter((b) => b.kind === "wait" && b.to - b.from > longWait).map((b) => ({ from: b.from + longWait, to: b.to }));
  return (/** @type {number} */ t) => t - folds.reduce((n, f) => n + Math.max(0, Math.min(t, f.to) - f.from), 0);
}
