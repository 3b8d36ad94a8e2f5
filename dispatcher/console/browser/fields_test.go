package browser_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
)

// spills are texts written from right to left in an element that does not keep their direction to itself.
const spills = `(() => {
	const out = [], all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (all.nextNode()) {
		const e = all.currentNode.parentElement;
		if (!/[\u0590-\u08ff]/.test(all.currentNode.data) || !e.checkVisibility()) continue;
		const s = getComputedStyle(e);
		if (s.display.startsWith("inline") && !s.unicodeBidi.includes("isolate") && !s.unicodeBidi.includes("plaintext")) out.push(e.outerHTML.slice(0, 100));
	}
	return out;
})()`

// takes sends a request with a hostile text and reports whether it is taken. One that is not taken is refused with a sentence that can be read.
func (h *hall) takes(method, path, body string) bool {
	h.Helper()
	status, answer := h.ask(method, path, body, "Longshore-By", "ann")
	if status < 300 {
		return true
	}
	said, _ := answer["detail"].(string)
	if status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge || len(said) < 10 || len(said) > 1000 || strings.ContainsFunc(said, unicode.IsControl) {
		h.Errorf("%s %s: %d %.300v", method, path, status, answer)
	}
	return false
}

// hostile fills every field that takes any text with one, and returns how many of them were taken.
func (h *hall) hostile(i int, text string) (taken int) {
	h.Helper()
	short, q := text[:min(len(text), 60)], func(v any) string { return quote(h.T, v) }
	for _, r := range []struct{ method, path, body string }{
		{"PUT", fmt.Sprintf("/v1/agents/h%d", i), q(map[string]any{"name": fmt.Sprintf("h%d", i), "description": short, "instructions": text, "model": short})},
		{"PUT", fmt.Sprintf("/v1/agents/d%d", i), q(map[string]any{"name": fmt.Sprintf("d%d", i), "description": text[:min(len(text), 4000)]})},
		{"PUT", fmt.Sprintf("/v1/prompts/p%d", i), q(map[string]any{"engine": "mustache", "name": short, "text": text, "author": short})},
		{"PUT", fmt.Sprintf("/v1/prompts/q%d", i), q(map[string]any{"name": short, "text": "x"})},
		{"PUT", fmt.Sprintf("/v1/schedules/s%d", i), q(map[string]any{"every": "24h", "description": short, "task": map[string]any{"input": text, "labels": map[string]string{"k": short, short: "k"}}})},
		{"POST", "/v1/pauses", q(map[string]any{"kind": "agent", "name": fmt.Sprintf("h%d", i), "reason": text, "by": short})},
		{"POST", "/v1/tasks", q(map[string]any{"id": fmt.Sprintf("a%d", i), "agent": "asker", "input": fmt.Sprintf("ask-%d-end", i), "labels": map[string]string{"k": short, short: "k"}})},
		{"POST", "/v1/tasks", q(map[string]any{"id": fmt.Sprintf("q%d", i), "agent": "curious", "input": fmt.Sprintf("wonder-%d-end", i), "session": fmt.Sprintf("s%d", i)})},
	} {
		if h.takes(r.method, r.path, r.body) {
			taken++
		}
	}
	h.publish(fmt.Sprintf("tasks.normal.default.dead%d", i), q(map[string]any{"input": text, "agent": "unknown", "labels": map[string]string{"k": short}}))
	lines := q(map[string]any{"custom_id": short, "input": "x", "agent": short}) + "\n" + q(map[string]any{"custom_id": fmt.Sprint("x", i), "input": "hi", short: 1}) + "\n"
	if i%10 == 0 {
		resp, err := http.Post(h.url+"/v1/batches?skipInvalid=true&name="+url.QueryEscape(short), "application/x-ndjson", strings.NewReader(lines))
		if err != nil {
			h.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	return taken
}

// What fills the other fields, of agents, prompts, schedules, pauses, labels, questions, files, batches and dead letters, is text too.
func TestHostileFields(t *testing.T) {
	all := hostile()
	var play strings.Builder
	play.WriteString("scenes:\n")
	for i, text := range all {
		file := quote(t, map[string]string{"filePath": text[:min(len(text), 100)], "content": text})
		question := quote(t, map[string]string{"question": text[:min(len(text), 3000)]})
		fmt.Fprintf(&play, "  - match: ask-%d-end\n    turns: [{text: x, calls: [{name: write_file, arguments: %s}]}]\n", i, file)
		fmt.Fprintf(&play, "  - match: wonder-%d-end\n    turns: [{text: x, calls: [{name: ask_human, arguments: %s}]}]\n", i, question)
	}
	h := open(t, settings.AuthOff, play.String())
	taken := 0
	for i, text := range all {
		taken += h.hostile(i, text)
	}
	if taken < 7*len(all) {
		t.Errorf("%d of %d fields took a text", taken, 8*len(all))
	}
	pages := map[string]string{
		"": "Newest runs", "runs?columns=id,status,agent,input,labels,model": "found", "inbox": "Approve", "agents": "h5", "try": "Agent", "prompts": "q42", "schedules": "s5",
		"quotas": "Paused", "batches": "Progress", "dead-letters": "unknown", "sessions": "s5", "sessions/s0": "Runs", "lanes": "Lanes", "audit": "pause", "workers": "Busy",
	}
	for i := range all {
		if i%4 == 0 {
			pages[fmt.Sprintf("agents/d%d", i)] = "Revisions"
			pages[fmt.Sprintf("prompts/p%d", i)] = "Versions"
			pages[fmt.Sprintf("schedules/s%d", i)] = fmt.Sprintf("s%d", i)
			pages[fmt.Sprintf("runs/a%d", i)] = fmt.Sprintf("a%d", i)
		}
	}
	_, listed := h.ask("GET", "/v1/batches", "")
	for _, b := range listed["batches"].([]any) {
		pages["batches/"+b.(map[string]any)["id"].(string)] = "Lines with errors"
	}
	h.dialogs("dead-letters", "tr:nth-child(5n) td button")
	for page, text := range pages {
		h.look("light", 1280, 1)
		h.do(chromedp.Navigate(h.url + "/" + page))
		h.shows(text)
		h.settled()
		h.harmless("/" + page)
		h.photograph("hostile_"+strings.NewReplacer("?", "_", ",", "").Replace(page), "light", 390)
	}
}

// unseen are texts and names in the page with characters that one does not see, that change how others read, or that stand on top of each other.
const unseen = `(() => {
	const bad = /(?![\t\n])[\p{Cc}\p{Cf}\u115f\u1160\u2028\u2029\u3164\uffa0]/u, tower = /[\p{Mn}\p{Me}]{9}/u, out = [], all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
	while (all.nextNode()) {
		const n = all.currentNode;
		for (const s of n.nodeType === Node.TEXT_NODE ? [n.data] : ["title", "aria-label", "alt", "placeholder", "label"].map((a) => n.getAttribute(a) ?? "")) if (bad.test(s) || tower.test(s)) out.push(s.slice(0, 100));
	}
	if (bad.test(document.title)) out.push(document.title);
	return out;
})()`

// harmless checks that nothing of the page runs, is wider than the window, hides the rest, or reads as something else.
func (h *hall) harmless(where string) {
	h.Helper()
	if out := eval[[]string](h, spills); len(out) > 0 {
		h.Errorf("%s: direction spills from %q", where, out)
	}
	if out := eval[[]string](h, unseen); len(out) > 0 {
		h.Errorf("%s: not seen in %q", where, out)
	}
	for _, width := range []int64{1280, 390} {
		h.do(chromedp.EmulateViewport(width, 900))
		state := eval[page](h, `({canary: "canary" in window, wide: document.documentElement.scrollWidth, menu: !!document.querySelector("nav.menu")?.offsetHeight})`)
		if state.Canary || state.Wide > width || !state.Menu {
			h.Errorf("%s at %d: %+v", where, width, state)
		}
	}
}
