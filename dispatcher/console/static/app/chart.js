// Charts over time.
import { html, useEffect, useRef } from "./html.js";
import uPlot from "../vendor/uplot.js";

/** What a token of the styles is here: a token that differs by theme has no value of its own. @param {HTMLElement} host @param {string} name */
function colorOf(host, name) {
  host.style.color = `var(--${name})`;
  const value = getComputedStyle(host).color;
  host.style.color = "";
  return value;
}

/** A moment on the axis: its day at midnight, else its time. @param {number} seconds */
function clock(seconds) {
  const at = new Date(seconds * 1000);
  if (at.getHours() || at.getMinutes()) return at.toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false });
  return at.toLocaleDateString("en", { month: "short", day: "numeric" });
}

/**
 * Bars or lines over time, with the figures of each moment in a table for those who do not see.
 * @param {{label: string, times: number[], series: {name: string, values: (number | null)[], color: string, bars?: boolean}[], form?: (n: number) => string}} props times in seconds
 */
export function Chart({ label, times, series, form = String }) {
  const at = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    const host = at.current;
    if (!host) return;
    const make = () => {
      const color = (/** @type {string} */ name) => colorOf(host, name);
      const axis = { stroke: color("faint"), grid: { stroke: color("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
      const half = times.length > 1 ? (times[1] - times[0]) / 2 : 0; // so that the first and the last bar are whole
      return new uPlot({
        width: host.clientWidth, height: 180, legend: { show: false }, cursor: { drag: { x: false, y: false } }, padding: [8, 24, 0, 0],
        scales: { x: { range: (_, from, to) => [from - half, to + half] }, y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
        axes: [{ ...axis, space: 60, size: 30, values: (_, list) => list.map(clock) }, { ...axis, size: 56, values: (_, list) => list.map((v) => form(v)) }],
        series: [{}, ...series.map((s) => ({ label: s.name, stroke: color(s.color), width: 1.5, fill: s.bars ? color(s.color) : undefined, points: { show: !s.bars, size: 5, fill: color(s.color) }, paths: s.bars ? uPlot.paths.bars?.({ size: [0.8, 40] }) : undefined }))],
      }, [times, ...series.map((s) => s.values)], host);
    };
    let plot = make();
    const watch = new ResizeObserver(() => plot.setSize({ width: host.clientWidth, height: 180 }));
    watch.observe(host);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => { plot.destroy(); plot = make(); };
    dark.addEventListener("change", redraw);
    return () => { watch.disconnect(); dark.removeEventListener("change", redraw); plot.destroy(); };
  }, [times, series]);
  return html`<figure class="card"><figcaption><b>${label}</b> ${series.map((s) => html`<span class="row key"><i class=${`swatch ${s.color}`}></i>${s.name}</span>`)}</figcaption>
    <div class="chart" ref=${at} aria-hidden="true"></div>
    <details><summary>As a table</summary><div class="scroll"><table><thead><tr><th>Time</th>${series.map((s) => html`<th class="number">${s.name}</th>`)}</tr></thead>
      <tbody>${times.map((t, i) => [t, i]).reverse().filter(([, i]) => series.some((s) => s.values[i])).slice(0, 100).map(([t, i]) => html`<tr><td>${new Date(t * 1000).toLocaleString()}</td>${series.map((s) => html`<td class="number">${form(s.values[i] ?? 0)}</td>`)}</tr>`)}</tbody></table></div></details>
  </figure>`;
}
