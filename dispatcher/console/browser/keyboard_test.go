package browser_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// keyboardScript is in each page that a keyboard works in. It finds controls by the names that a screen reader speaks, and notes which kinds
// of controls a view has and which of them a key has operated. A kind is the name of a control without the data in it.
const keyboardScript = `
window.keys = (() => {
	const squeeze = (s) => (s ?? "").replace(/\s+/g, " ").trim();
	const controls = "a[href], button, input, select, textarea, summary";
	const visible = (e) => e.checkVisibility({visibilityProperty: true});
	const scope = () => [...document.querySelectorAll("dialog[open]")].pop() ?? document;
	const stops = () => [...scope().querySelectorAll(controls + ", [tabindex='0']")].filter((e) => !e.disabled && e.tabIndex >= 0 && visible(e));
	const name = (e) => squeeze(e.ariaLabel || (e.labels?.length ? e.labels[0].querySelector(":scope > span")?.textContent || e.labels[0].textContent : e.textContent));
	// place is where a control stands: a view, or what several views have.
	const place = (e) => {
		if (e.closest("nav.menu")) return "menu";
		if (e.closest("form:has(input[name=key])")) return "sign-in";
		if (e.closest(".command")) return "command";
		if (e.closest("section.tried > :not(:first-child)")) return "/runs/…";
		return location.pathname.replace(/^(\/[^/]*)\/.*/, "$1/…");
	};
	const address = (e) => {
		const u = new URL(e.href), names = [...u.searchParams.keys()].sort();
		return u.pathname.replace(/^(\/(?:v1\/)?[^/]*)\/.*/, "$1/…") + (names.length ? "?" + names.join("&") : "") + (u.hash ? "#…" : "");
	};
	const kind = (e) => {
		const cell = e.closest("td"), dialog = e.closest("dialog");
		if (dialog && e.ariaLabel === "Close") return "a dialog › button Close"; // the same in each
		const column = cell && squeeze(cell.closest("table").tHead?.rows[0]?.cells[cell.cellIndex]?.textContent);
		const general = (s) => s.replace(/\d+(\.\d+)*/g, "#");
		let what = e.localName + " " + general(name(e));
		if (place(e) === "menu") what = "entry";
		else if (e.matches(".bar")) what = "bar";
		else if (e.matches(".tabs a")) what = "tab " + name(e);
		else if (e.matches("a[download]")) what = "download";
		else if (e.matches("a")) what = "link " + address(e);
		else if (e.matches("summary")) what = "summary of a " + (e.closest(".call") ? "call" : e.closest(".turn") ? "turn" : e.closest("figure") ? "chart" : "part");
		else if (e.type === "checkbox" && dialog?.ariaLabel === "Columns") what = "checkbox of a column";
		else if (e.type === "checkbox" && cell) what = "checkbox of a row";
		else if (e.localName === "button" && column) what = "button in " + column;
		return place(e) + (dialog ? " › " + general(dialog.ariaLabel) : "") + " › " + what;
	};
	let seen = new Set(), done = new Set(), dim = new Set(), had = false;
	const operated = (e) => { const c = e.target.closest?.(controls); if (c) done.add(kind(c)); };
	addEventListener("click", (e) => { if (e.isTrusted && e.detail === 0) operated(e); }, true);
	for (const type of ["input", "change"]) addEventListener(type, (e) => { if (e.isTrusted) operated(e); }, true);
	addEventListener("focusin", (e) => {
		had = true;
		const s = getComputedStyle(e.target);
		if (e.target.tabIndex >= 0 && (s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 1)) dim.add(kind(e.target));
	}, true);
	const fits = (e, wanted) => wanted.startsWith("~") ? name(e).startsWith(wanted.slice(1)) : wanted.startsWith("in ") ? kind(e).endsWith(" › button " + wanted) : wanted.startsWith("to ") ? kind(e).endsWith(" › link " + wanted.slice(3)) : name(e) === wanted;
	const find = (of, wanted, within) => stops().find((e) => e.matches(of) && fits(e, wanted) && (!within || e.closest("tr, li, section, form")?.textContent.includes(within))) ?? null;
	return {
		find,
		lost: () => had && (!document.activeElement || document.activeElement === document.body),
		// far is how many times Tab leads from here to a control; less than zero: Shift+Tab.
		look(of, wanted, within) {
			const e = find(of, wanted, within), at = document.activeElement;
			const far = e === null ? null : at === e ? 0 : (() => {
				if (!at || at === document.body) return 1;
				const list = stops(), to = list.indexOf(e), from = list.indexOf(at);
				if (from >= 0) return to - from;
				const next = list.findIndex((x) => at.compareDocumentPosition(x) & Node.DOCUMENT_POSITION_FOLLOWING);
				return next < 0 ? to - list.length : to >= next ? to - next + 1 : to - next;
			})();
			return {found: e !== null, far: far ?? 0, skip: Boolean(at?.matches(".skip") && e?.closest("main, dialog"))};
		},
		tell() {
			for (const e of document.querySelectorAll(controls)) if (visible(e) && e.closest("main, dialog, nav.menu") && name(e) !== "Copied") seen.add(kind(e));
			const told = {seen: [...seen], done: [...done], dim: [...dim]};
			seen = new Set(); done = new Set(); dim = new Set();
			return told;
		},
	};
})();`

// A keyboard operates the pages of a hall by key events alone.
type keyboard struct {
	*hall

	kinds *kinds
	deed  string // what is done now
}

func (h *hall) keyboard(kinds *kinds) *keyboard {
	h.Helper()
	if _, err := chromedp.Call(h.tab(), cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: keyboardScript}); err != nil {
		h.Fatal(err)
	}
	k := &keyboard{hall: h, kinds: kinds}
	h.Cleanup(func() {
		if h.Failed() {
			h.Logf("the last deed: %s", k.deed)
		}
	})
	return k
}

// visit opens a page, as the address line does.
func (k *keyboard) visit(path string) {
	k.Helper()
	k.do(chromedp.Navigate(k.url + path))
	k.settled()
}

// A stroke is a part of what is done: keys that lead to a control and operate it, or what the page must show before the next.
type stroke func(k *keyboard)

// far is where a control is from where the focus is.
type far struct {
	Found bool
	Far   int
	Skip  bool // the focus is on the link past the menu
}

const mostSteps = 50 // corrections of a way that a redrawn page has changed

// What strokes operate.
const (
	buttons = "a, button, summary, input[type=file]"
	fields  = "input, select, textarea"
)

// reach leads the focus to a control with Tab alone. The name may begin with ~, and say how that of the control begins; be "in Number", a button
// in that column, or "to /runs?agent", a link there with those parameters; and end with what the row of the control has: "Change | acme".
func (k *keyboard) reach(of, control string) {
	k.Helper()
	name, within, _ := strings.Cut(control, " | ")
	args := quote(k.T, of) + ", " + quote(k.T, name) + ", " + quote(k.T, within)
	for range mostSteps {
		k.note()
		at := eval[far](k.hall, `keys.look(`+args+`)`)
		switch {
		case !at.Found:
			k.do(until(`window.keys?.find(` + args + `) != null`))
		case at.Skip:
			k.do(chromedp.KeyEvent(kb.Enter))
		case at.Far == 0:
			return
		case at.Far > 0:
			k.do(slices.Repeat([]chromedp.Action[chromedp.Void]{chromedp.KeyEvent(kb.Tab)}, at.Far)...)
		default:
			k.do(slices.Repeat([]chromedp.Action[chromedp.Void]{chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift))}, -at.Far)...)
		}
	}
	k.Fatalf("%s: Tab does not lead to %q, but to %s", k.deed, control, k.focus())
}

// focus is what has it.
func (k *keyboard) focus() string {
	k.Helper()
	return eval[string](k.hall, `document.activeElement?.outerHTML.slice(0, 200) ?? "nothing"`)
}

// note keeps which controls there are and which were operated, checks that the focus was seen on each that had it, and returns which were operated
// since the last note.
func (k *keyboard) note() (operated []string) {
	k.Helper()
	told := eval[struct{ Seen, Done, Dim []string }](k.hall, `keys.tell()`)
	k.kinds.note(k.deed, told.Seen, told.Done)
	for _, kind := range told.Dim {
		k.Errorf("%s: the focus is not seen on %s", k.deed, kind)
	}
	return told.Done
}

// held checks that something has the focus, once the page is drawn.
func (k *keyboard) held(after string) {
	k.Helper()
	if _, err := chromedp.Run(k.tab(), until(`!window.keys?.lost()`)); err != nil {
		k.Errorf("%s: after %s nothing has the focus: %v", k.deed, after, err)
	}
}

// to reaches a control, and does nothing with it.
func to(control string) stroke {
	return func(k *keyboard) {
		k.Helper()
		k.reach(buttons, control)
	}
}

// press reaches a button or link and presses Enter.
func press(control string) stroke {
	return func(k *keyboard) {
		k.Helper()
		k.reach(buttons, control)
		k.do(chromedp.KeyEvent(kb.Enter))
		k.held(control)
		k.note()
	}
}

// follow reaches a link by where it leads, and follows it; the same Enter operates nothing of the view that opens.
func follow(address string) stroke {
	return func(k *keyboard) {
		k.Helper()
		k.reach("a", "to "+address)
		target := eval[string](k.hall, `document.activeElement.href`)
		k.do(chromedp.KeyEvent(kb.Enter))
		k.do(until(`location.href === ` + quote(k.T, target) + ` && document.querySelector("main h1") !== null`))
		k.settled()
		k.held(target)
		if operated := k.note(); len(operated) != 1 || !strings.HasSuffix(operated[0], " › link "+address) {
			k.Errorf("%s: Enter on the link to %s has operated %q", k.deed, target, operated)
		}
	}
}

// tick reaches a checkbox and presses the space bar.
func tick(control string) stroke {
	return func(k *keyboard) {
		k.Helper()
		k.reach(fields, control)
		k.do(chromedp.KeyEvent(" "))
		k.held(control)
		k.note()
	}
}

// write reaches a field and types a text in place of what it holds; in a field of one line, Enter ends it.
func write(field, text string) stroke {
	return func(k *keyboard) {
		k.Helper()
		k.reach(fields, field)
		k.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)), chromedp.KeyEvent(kb.Delete), chromedp.KeyEvent(text))
		if got := eval[string](k.hall, `document.activeElement.value`); strings.ReplaceAll(got, "\n", "\r") != text {
			k.Errorf("%s: typed into %q is %q", k.deed, field, got)
		}
		if eval[bool](k.hall, `document.activeElement.localName === "input" && !document.activeElement.closest("dialog")`) {
			k.do(chromedp.KeyEvent(kb.Enter))
		}
		k.note()
	}
}

// choose reaches a field with a list and goes to the option with the arrow keys: what types its name depends on how fast that is.
func choose(field, option string) stroke {
	return func(k *keyboard) {
		k.Helper()
		k.reach(fields, field)
		far := eval[int](k.hall, `((e) => [...e.options].findIndex((o) => o.textContent.startsWith(`+quote(k.T, option)+`)) - e.selectedIndex)(document.activeElement)`)
		for range max(far, -far) {
			if far > 0 {
				k.do(chromedp.KeyEvent(kb.ArrowDown))
			} else {
				k.do(chromedp.KeyEvent(kb.ArrowUp))
			}
		}
		k.do(until(`document.activeElement.selectedOptions?.[0]?.textContent.startsWith(` + quote(k.T, option) + `)`))
		k.note()
	}
}

// keys presses keys where the focus is, quickly, however busy the machine is.
func keys(text string) stroke {
	return func(k *keyboard) {
		k.Helper()
		at := input.TimeSinceEpoch(float64(time.Now().UnixMilli()) / 1000)
		k.do(chromedp.KeyEvent(text, func(p *input.DispatchKeyEventParams) { p.Timestamp = at }))
		k.held("the keys " + text)
		k.note()
	}
}

// sees waits until the page shows a text.
func sees(text string) stroke {
	return func(k *keyboard) {
		k.Helper()
		k.shows(text)
		k.settled()
		k.note()
	}
}

// gone waits until the page no longer shows a text.
func gone(text string) stroke {
	return func(k *keyboard) {
		k.Helper()
		k.do(until(`!document.body.innerText.includes(` + quote(k.T, text) + `)`))
		k.held("the end of " + text)
	}
}

// becomes waits until something holds in the page.
func becomes(expression string) stroke {
	return func(k *keyboard) {
		k.Helper()
		k.do(until(expression))
	}
}

// rows waits until the table of the page has that many.
func rows(n int) stroke {
	return becomes(`document.querySelectorAll("main tbody tr").length === ` + strconv.Itoa(n))
}

// back opens a dialog and leaves it, which gives the focus back.
func back(opener, leave string) stroke {
	return func(k *keyboard) {
		k.Helper()
		press(opener)(k)
		k.do(chromedp.WaitVisible("dialog[open]"))
		press(leave)(k)
		name, within, _ := strings.Cut(opener, " | ")
		k.do(until(`!document.querySelector("dialog[open]") && document.activeElement === keys.find("button", ` + quote(k.T, name) + `, ` + quote(k.T, within) + `)`))
	}
}

// A deed is something that a view offers to do.
type deed struct {
	page   string // where it begins; empty: where the one before has ended
	what   string
	by     []stroke
	effect func(h *hall) string // what the API says instead; empty: it is done
}

// work does deeds one after the other, and checks the effect of each past the browser.
func (k *keyboard) work(deeds []deed) {
	k.Helper()
	for _, d := range deeds {
		k.deed = d.what
		if d.page != "" {
			k.visit("/" + strings.TrimPrefix(d.page, "/"))
		}
		began := time.Now()
		for _, s := range d.by {
			s(k)
		}
		k.proves(d)
		if testing.Verbose() {
			k.Logf("%s: %v", d.what, time.Since(began).Round(time.Millisecond))
		}
	}
}

// proves waits for the effect of a deed.
func (k *keyboard) proves(d deed) {
	k.Helper()
	if d.effect == nil {
		return
	}
	late := time.After(patience)
	for {
		instead := d.effect(k.hall)
		if instead == "" {
			return
		}
		select {
		case <-late:
			k.Errorf("%s: it is not done: %s", d.what, instead)
			return
		case <-time.After(again):
		}
	}
}
