// What views are made of: elements, hooks and signals.
import { h, render, Fragment } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export const html = htm.bind(h);
export { h, render, Fragment };
export { useState, useEffect, useRef, useMemo, useCallback, useLayoutEffect, useId } from "../vendor/hooks.js";
export { signal, computed, effect, batch } from "../vendor/signals.js";
