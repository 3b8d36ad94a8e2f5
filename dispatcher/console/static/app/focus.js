// Where the focus goes when what has it is removed or disabled: to its neighbour, so that a keyboard continues where it was.

const controls = "a[href], button, input, select, textarea, summary, [tabindex='0'], .skeleton";

let last = /** @type {HTMLElement | null} */ (null); // what has the focus, or had it until it was taken away
let cell = -1; // of the row that it is in
let path = location.pathname; // of the view that was drawn last

document.addEventListener("focusin", (e) => {
  last = /** @type {HTMLElement} */ (e.target);
  cell = /** @type {HTMLTableCellElement | null} */ (last.closest("td"))?.cellIndex ?? -1;
});
document.addEventListener("focusout", () => setTimeout(() => { // who leaves a control that is still there wants no other
  if (last && usable(last) && nothing()) last = null;
}));

const usable = (/** @type {Element} */ e) => e.isConnected && !(/** @type {HTMLButtonElement} */ (e).disabled) && e.checkVisibility();
const nothing = () => !document.activeElement || document.activeElement === document.body;

/** The first control of an element, which may be the element; in a row that of the same column, if there is one. @param {Element} e */
function first(e) {
  const same = cell >= 0 && e instanceof HTMLTableRowElement ? e.cells[cell] : undefined;
  for (const part of same ? [same, e] : [e]) {
    const found = [part, ...part.querySelectorAll(controls)].find((c) => c.matches(controls) && usable(c));
    if (found) return found;
  }
  return null;
}

/** The nearest control: what follows, else what is before, else around it. @param {Element | null} next @param {Element | null} before @param {Element} parent @returns {Element | null} */
function neighbour(next, before, parent) {
  for (let e = next; e; e = e.nextElementSibling) { const found = first(e); if (found) return found; }
  for (let e = before; e; e = e.previousElementSibling) { const found = first(e); if (found) return found; }
  if (parent.matches(`main, dialog, ${controls}`) || !parent.parentElement) return parent;
  return neighbour(parent.nextElementSibling, parent.previousElementSibling, parent.parentElement);
}

const element = (/** @type {Node | null} */ n) => (n instanceof Element || !n ? n : n.parentElement && (/** @type {Text} */ (n).previousElementSibling));

new MutationObserver((records) => {
  const moved = path !== location.pathname;
  path = location.pathname;
  if (!last || !(nothing() || /** @type {HTMLButtonElement} */ (document.activeElement).disabled)) return;
  let gone = /** @type {Node} */ (last), where = /** @type {MutationRecord | null} */ (null);
  for (const r of records) for (const n of r.removedNodes) if (n.contains(gone)) { where = r; gone = r.target; }
  let to = /** @type {Element | null} */ (null);
  if (where && moved) to = document.getElementById("main"); // no control of the next view: the Enter that has opened a link would operate it
  else if (usable(last)) to = where && last; // it was moved
  else if (last.isConnected && last.parentElement) to = neighbour(last.nextElementSibling, last.previousElementSibling, last.parentElement);
  else if (where?.target instanceof Element && where.target.isConnected) {
    const before = where.previousSibling?.isConnected ? element(where.previousSibling) : null;
    const after = where.nextSibling?.isConnected ? element(where.nextSibling) : null;
    to = neighbour(before ? before.nextElementSibling : (where.previousSibling && after) || where.target.firstElementChild, before, where.target);
  }
  /** @type {HTMLElement | null} */ (to)?.focus({ preventScroll: true });
}).observe(document.documentElement, { subtree: true, childList: true, attributeFilter: ["disabled"] });
