// The address is the state of a view: a path, and parameters that filter it.
import { signal, computed } from "./html.js";

const read = () => ({ path: location.pathname, params: new URLSearchParams(location.search) });

/** Where the browser is. */
export const place = signal(read());

/** The tenant that requests are for, of those who may choose one; empty: their own. */
export const tenant = computed(() => place.value.params.get("tenant") ?? "");

window.addEventListener("popstate", () => (place.value = read()));

/**
 * The address of a page. The tenant stays.
 * @param {string} path
 * @param {Record<string, string | number | boolean | undefined | null>} [params] those that are empty are left out
 */
export function to(path, params = {}) {
  const all = new URLSearchParams();
  if (tenant.value) all.set("tenant", tenant.value);
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "" && value !== false) all.set(name, String(value));
    else all.delete(name);
  }
  const text = all.toString();
  return text ? `${path}?${text}` : path;
}

/**
 * Goes to an address, as if a link to it had been followed.
 * @param {string} address
 * @param {{replace?: boolean}} [how]
 */
export function go(address, how = {}) {
  if (how.replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  place.value = read();
  if (!how.replace) window.scrollTo(0, 0);
}

/**
 * Changes parameters of the address, and leaves the others.
 * @param {Record<string, string | undefined | null>} changes
 * @param {{replace?: boolean}} [how]
 */
export function refine(changes, how = { replace: true }) {
  const params = new URLSearchParams(place.value.params);
  for (const [name, value] of Object.entries(changes)) {
    if (value) params.set(name, value);
    else params.delete(name);
  }
  const text = params.toString();
  go(place.value.path + (text ? `?${text}` : ""), how);
}

// Links within the console do not load it again.
document.addEventListener("click", (e) => {
  if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  const link = /** @type {Element} */ (e.target).closest?.("a[href]");
  if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (link.pathname.startsWith("/v1/") || link.pathname.startsWith("/console/")) return;
  if (link.hash && link.pathname === location.pathname && link.search === location.search) return; // a place on this page
  e.preventDefault();
  go(link.pathname + link.search + link.hash);
});

// A row that leads elsewhere, as its link does, can be clicked anywhere but on what it has to operate; selecting its text is no click.
document.addEventListener("click", (e) => {
  if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey || getSelection()?.toString()) return;
  const at = /** @type {Element} */ (e.target);
  const href = /** @type {HTMLElement | null} */ (at.closest?.("tr[data-href]"))?.dataset.href;
  if (href && !at.closest("a, button, input, label, select, summary, textarea")) go(href);
});
