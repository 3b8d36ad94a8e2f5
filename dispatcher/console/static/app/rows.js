// Long lists: only what is near the window is in the page.
import { html, useCallback, useEffect, useLayoutEffect, useRef, useState } from "./html.js";

const around = 800; // pixels above and below the window that are drawn too

/**
 * Rows, of which those near the window are in the page; above and below them is as much room as the others take.
 * @template T
 * @param {{of: T[], keyOf: (row: T) => string, row: (row: T, i: number) => any, usual: number}} props usual: the height of a row that was not drawn yet, in pixels
 */
export function Rows({ of, keyOf, row, usual }) {
  const host = useRef(/** @type {HTMLDivElement | null} */ (null));
  const heights = useRef(/** @type {Map<string, number>} */ (new Map()));
  const [range, setRange] = useState({ from: 0, to: Math.min(of.length, 20), above: 0, below: 0 });
  const place = useCallback(() => {
    if (!host.current) return;
    const top = -host.current.getBoundingClientRect().top;
    const next = { from: 0, to: of.length, above: 0, below: 0 };
    let y = 0;
    for (let i = 0; i < of.length; i++) {
      const height = heights.current.get(keyOf(of[i])) ?? usual;
      if (y + height < top - around) Object.assign(next, { from: i + 1, above: y + height });
      else if (y > top + innerHeight + around) {
        if (next.to === of.length) next.to = i;
        next.below += height;
      }
      y += height;
    }
    setRange((old) => (old.from === next.from && old.to === next.to && old.above === next.above && old.below === next.below ? old : next));
  }, [of, of.length]);
  useEffect(() => {
    let due = 0;
    const soon = () => { due ||= requestAnimationFrame(() => { due = 0; place(); }); };
    addEventListener("scroll", soon, { passive: true, capture: true });
    addEventListener("resize", soon);
    return () => { removeEventListener("scroll", soon, { capture: true }); removeEventListener("resize", soon); cancelAnimationFrame(due); };
  }, [place]);
  useLayoutEffect(() => { // what was drawn has a height now, and with it others may come into view
    for (const drawn of host.current?.children ?? []) {
      const key = /** @type {HTMLElement} */ (drawn).dataset.row;
      if (key !== undefined) heights.current.set(key, drawn.getBoundingClientRect().height);
    }
    place();
  });
  return html`<div ref=${host} style=${{ paddingTop: `${range.above}px`, paddingBottom: `${range.below}px` }}>
    ${of.slice(range.from, range.to).map((r, i) => html`<div key=${keyOf(r)} data-row=${keyOf(r)}>${row(r, range.from + i)}</div>`)}</div>`;
}
