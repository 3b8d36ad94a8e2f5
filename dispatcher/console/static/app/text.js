// Text of models, tools and tasks. It is data: what would run, load or reach elsewhere does not become part of the page.
import { html, useMemo } from "./html.js";
import { marked } from "../vendor/marked.js";
import DOMPurify from "../vendor/purify.js";
import { plain } from "./format.js";

// Longer texts are shown as they are: to typeset a megabyte takes seconds.
const mostTypeset = 100_000;

const allowed = ["a", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "li", "ol", "p", "pre", "s",
  "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"];

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.nodeName !== "A") return;
  const href = node.getAttribute("href") ?? "";
  if (!/^https?:\/\//i.test(href) && !/^mailto:/i.test(href)) {
    node.removeAttribute("href");
    return;
  }
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
  node.setAttribute("class", "outside");
  node.setAttribute("title", href);
});

const renderer = {
  // Nothing is loaded from elsewhere: a link says where the image is.
  /** @param {{href: string, text: string}} token */
  image({ href, text }) { return `<a href="${escape(href)}">image: ${escape(text || href)}</a>`; },
  /** @param {{text: string}} token */
  html({ text }) { return escape(text); },
};
marked.use({ renderer, gfm: true, breaks: true });

/** @param {string} s */
const escape = (s) => s.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

/** Markdown, typeset. @param {{text: string}} props */
export function Markdown({ text }) {
  const made = useMemo(() => {
    if (!text || text.length > mostTypeset) return null;
    try {
      const source = plain(text, mostTypeset);
      return DOMPurify.sanitize(/** @type {string} */ (marked.parse(source, { async: false })), { ALLOWED_TAGS: allowed, ALLOWED_ATTR: ["href", "align", "start"], RETURN_TRUSTED_TYPE: true });
    } catch {
      return null; // it is shown as it is
    }
  }, [text]);
  if (!made) return html`<pre class="text">${plain(text, 1 << 20)}</pre>`;
  return html`<div class="markdown" dir="auto" dangerouslySetInnerHTML=${{ __html: made }}></div>`;
}

/** Text as it is, JSON indented; long ones are cut until they are asked for. @param {{value: any}} props */
export function Raw({ value }) {
  const text = useMemo(() => {
    if (typeof value !== "string") return JSON.stringify(value, null, 2);
    const start = value.trimStart()[0];
    if (start !== "{" && start !== "[" || value.length > mostTypeset) return value;
    try { return JSON.stringify(JSON.parse(value), null, 2); } catch { return value; }
  }, [value]);
  return html`<pre class="text" dir="auto" tabindex="0">${plain(text, mostTypeset)}</pre>`;
}
