// What a view shows of the API: loaded, loaded again while it is looked at, and kept when the dispatcher is away.
import { useEffect, useRef, useState, useCallback, signal } from "./html.js";
import { Problem, reachable } from "./api.js";

/** Whether the page is looked at: a hidden one asks for nothing. */
export const visible = signal(!document.hidden);
document.addEventListener("visibilitychange", () => (visible.value = !document.hidden));

/**
 * Loads something, and again whenever what it depends on changes.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {any[]} deps
 * @param {{every?: number}} [how] every: milliseconds after which it is loaded again while the page is visible
 * @returns {{data: T | undefined, error: Error | undefined, loading: boolean, reload: () => void}} data stays while it is loaded again
 */
export function useLoad(load, deps, how = {}) {
  const [state, setState] = useState(/** @type {{data?: T, error?: Error, loading: boolean}} */ ({ loading: true }));
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const shown = visible.value;
  useEffect(() => setState({ loading: true }), deps);
  useEffect(() => {
    if (!shown) return;
    const stop = new AbortController();
    let timer = 0;
    const run = async () => {
      try {
        const data = await latest.current(stop.signal);
        if (stop.signal.aborted) return;
        setState({ data, loading: false });
      } catch (err) {
        if (stop.signal.aborted) return;
        setState((s) => ({ data: s.data, error: /** @type {Error} */ (err), loading: false }));
        if (err instanceof Problem && !err.retryable) return; // to ask again would not help
      }
      const wait = how.every ?? (reachable.value ? 0 : 3000);
      if (wait) timer = window.setTimeout(run, wait);
    };
    run();
    return () => { stop.abort(); clearTimeout(timer); };
  }, [...deps, turn, shown]);
  return { data: state.data, error: state.error, loading: state.loading, reload: useCallback(() => setTurn((n) => n + 1), []) };
}
