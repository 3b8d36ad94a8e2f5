// What a view shows of the API: loaded, loaded again while it is looked at, and kept when the dispatcher is away.
import { useEffect, useRef, useState, useCallback, computed, signal } from "./html.js";
import { Problem, signedOut } from "./api.js";

const looked = signal(!document.hidden);
document.addEventListener("visibilitychange", () => (looked.value = !document.hidden));

/** Whether the page is looked at, by somebody with a session: otherwise it asks for nothing. */
export const visible = computed(() => looked.value && !signedOut.value);

/**
 * Loads something, and again whenever what it depends on changes.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {any[]} deps
 * @param {{every?: number}} [how] every: milliseconds after which it is loaded again while the page is visible
 * @returns {{data: T | undefined, error: Error | undefined, loading: boolean, settled: boolean, reload: () => void}} data stays while it is loaded again;
 *   settled: it was loaded once, or failed, so that what is below may be shown and will not move
 */
export function useLoad(load, deps, how = {}) {
  const [state, setState] = useState(/** @type {{data?: T, error?: Error, loading: boolean}} */ ({ loading: true }));
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const settled = useRef(false);
  if (!state.loading) settled.current = true;
  const shown = visible.value;
  useEffect(() => setState({ loading: true }), deps);
  useEffect(() => {
    if (!shown) return;
    const stop = new AbortController();
    let timer = 0;
    const run = async () => {
      let failed = false;
      try {
        const data = await latest.current(stop.signal);
        if (stop.signal.aborted) return;
        setState({ data, loading: false });
      } catch (err) {
        if (stop.signal.aborted) return;
        setState((s) => ({ data: s.data, error: /** @type {Error} */ (err), loading: false }));
        if (err instanceof Problem && !err.retryable) return; // to ask again would not help
        failed = true;
      }
      const wait = how.every ?? (failed ? 3000 : 0);
      if (wait) timer = window.setTimeout(run, wait);
    };
    run();
    return () => { stop.abort(); clearTimeout(timer); };
  }, [...deps, turn, shown]);
  return { data: state.data, error: state.error, loading: state.loading, settled: settled.current, reload: useCallback(() => setTurn((n) => n + 1), []) };
}
