package browser_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/chromedp/chromedp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// head is the beginning of a text.
func head(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }

// answers has other workers than that of the hall answer those who ask for workers.
func (h *hall) answers(workers ...messages.WorkerStatus) {
	h.Helper()
	nc, err := nats.Connect(h.dev.NATS)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(nc.Close)
	bodies := make([][]byte, len(workers))
	for i := range workers {
		if bodies[i], err = json.Marshal(workers[i]); err != nil {
			h.Fatal(err)
		}
	}
	if _, err := nc.Subscribe(messages.StatusOfWorkers, func(m *nats.Msg) {
		for _, body := range bodies {
			_ = m.Respond(body)
		}
	}); err != nil {
		h.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		h.Fatal(err)
	}
}

// visits opens pages, each of which shows a text, and checks that they are harmless.
func (h *hall) visits(pages map[string]string) {
	h.Helper()
	for page, text := range pages {
		h.look("light", 1280, 1)
		h.do(chromedp.Navigate(h.url + "/" + page))
		h.shows(text)
		h.settled()
		h.harmless("/" + page)
	}
}

// dialogs opens what buttons of a page lead to, one after the other, and checks that it is harmless.
func (h *hall) dialogs(page, buttons string) {
	h.Helper()
	h.do(chromedp.Navigate(h.url+"/"+page), chromedp.WaitVisible(buttons))
	h.settled()
	n := eval[int](h, `document.querySelectorAll(`+quote(h.T, buttons)+`).length`)
	for i := range n {
		h.look("light", 1280, 1)
		eval[int](h, fmt.Sprintf(`(document.querySelectorAll(%s)[%d].click(), 0)`, quote(h.T, buttons), i))
		h.do(chromedp.WaitVisible("dialog[open]"))
		h.settled()
		h.harmless(fmt.Sprintf("/%s, dialog %d", page, i))
		if wide := eval[int64](h, `document.querySelector("dialog[open]").scrollWidth - document.querySelector("dialog[open]").clientWidth`); wide > 0 {
			h.Errorf("/%s, dialog %d: it scrolls to the side by %d", page, i, wide)
		}
		h.do(chromedp.Click("dialog[open] button[aria-label=Close]"), chromedp.WaitNotPresent("dialog[open]"))
	}
}

// What workers say of themselves, of their tools and of their models is text; MCP servers and other programs write most of it.
func TestHostileWorkers(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	all := hostile()
	workers := []messages.WorkerStatus{ // what no worker says of itself is left out
		{ID: "label", Name: "refused", Labels: messages.Labels{"a": "<b>"}},
		{ID: "tool", Name: "refused", Tools: []string{"<b>"}},
		{ID: "long", Name: strings.Repeat("refused", 200)},
	}
	names := []string{"__proto__", "constructor", "toString"}
	for i, text := range all {
		tool := fmt.Sprintf("t%d", i)
		if i < len(names) {
			tool = names[i]
		}
		schema := quote(t, map[string]any{"title": head(text, 5000), "properties": map[string]any{head(text, 60): map[string]any{"description": head(text, 5000), "default": head(text, 60)}}})
		workers = append(workers, messages.WorkerStatus{
			ID: fmt.Sprintf("w%d", i), Name: head(text, 1000), Host: head(text, 1000), Version: head(text, 1000), Slots: 1, Since: time.Now(),
			Tools: []string{tool}, Labels: messages.Labels{"constructor": "__proto__", strings.Repeat("k", 64): strings.Repeat("v", 64)},
			Models: []messages.ModelState{{Provider: head(text, 200), Model: head(text, 200), Circuit: head(text, 20), Last: messages.Code(head(text, 200)), Answered: 1, Failed: 1}},
			Specs:  []messages.ToolSpec{{Name: tool, Description: head(text, 20_000), Effect: messages.Effect(head(text, 20)), InputSchema: json.RawMessage(schema)}},
		})
	}
	h.answers(workers...)
	pages := map[string]string{"workers": "constructor=__proto__", "tools": "constructor", "": "Providers", "tools/__proto__": "What models read", "tools/constructor": "What models read"}
	for i := len(names); i < len(all); i += 4 {
		pages[fmt.Sprintf("tools/t%d", i)] = "What models read"
	}
	h.visits(pages)
	h.do(chromedp.Navigate(h.url + "/workers"))
	h.shows("constructor=__proto__")
	if n := eval[int](h, `document.querySelectorAll("tbody tr").length`); n != len(all)+1 {
		t.Errorf("%d workers are listed, and %d answer as they should", n, len(all)+1)
	}
	h.dialogs("workers", "tr:nth-child(7n) td button:enabled")
	for _, page := range []string{"workers", "tools", ""} {
		h.do(chromedp.Navigate(h.url + "/" + page))
		h.shows(pages[page])
		h.photograph("hostile_"+page, "light", 1280)
	}
}

// Names of models are text too, beside each reply of theirs.
func TestHostileModelNames(t *testing.T) {
	const name = "<img src=x onerror=window.canary=1>\u202egnp.exe\u2069\x1b[31m"
	scenes, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	r, err := model.NewRouter(model.RouterConfig{Endpoints: []model.Endpoint{{Name: "steady", Model: name, Provider: scripted.New(scenes)}}, Default: "steady"})
	if err != nil {
		t.Fatal(err)
	}
	h := openOn(t, settings.AuthOff, r)
	for _, id := range []string{"m", "n"} {
		h.submit(`{"id":"`+id+`","input":"write"}`, true)
	}
	h.visits(map[string]string{
		"runs?columns=id,model": "<img", "runs/m": "<img", "runs/m?tab=timeline": "<img", "compare/m/n": "<img", "runs/m?tab=log": "started", "runs/m?tab=raw": "Copy JSON", "": "<img",
	})
}

// What is remembered is text: what it says, what it is about, its tags, its fields and the document that it is from.
func TestHostileMemory(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	all := hostile()
	taken := map[string]int{}
	for i, text := range all {
		whole := map[string]any{"id": fmt.Sprintf("i%d", i), "text": "x"}
		for field, value := range map[string]any{
			"text": head(text, 8000), "subject": head(text, 120), "tags": []string{head(text, 60)}, "fields": map[string]any{head(text, 60): head(text, 1000)},
			"source": map[string]any{"document": head(text, 200), "part": 1}, "id": text, "agent": text, "session": text,
		} {
			item := map[string]any{"id": fmt.Sprintf("%s_%d", field, i), "text": "x"}
			item[field] = value
			if h.takes("PUT", "/v1/memory/apart/items", quote(t, map[string]any{"items": []any{item}})) {
				taken[field]++
				whole[field] = value
			}
		}
		if i%4 == 0 {
			h.takes("PUT", "/v1/memory/constructor/items", quote(t, map[string]any{"items": []any{whole}}))
		}
		h.takes("PUT", "/v1/memory/"+url.PathEscape("a"+head(text, 200))+"/items", `{"items":[{"id":"x","text":"x"}]}`)
	}
	for field, n := range taken {
		switch field {
		case "id", "agent", "session":
			if n > 8 { // those of the texts that are names
				t.Errorf("%s takes %d of %d texts", field, n, len(all))
			}
		default:
			if n < len(all)*3/4 {
				t.Errorf("%s takes %d of %d texts", field, n, len(all))
			}
		}
	}
	h.visits(map[string]string{
		"memory": "constructor", "memory/apart": "Older", "memory/constructor": "When", "memory/constructor?tag=" + url.QueryEscape("<svg onload="): "Nothing matches",
		"memory/constructor?q=script": "Memory constructor", "memory/__proto__": "Memory __proto__",
	})
	h.dialogs("memory/constructor", "td button.id")
}

// Suites, their cases and the other labels of runs are text.
func TestHostileLabels(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	pages := map[string]string{"suites": "Tokens of a run", "runs?columns=id,labels": "found"}
	taken := 0
	for i, text := range hostile() {
		suite := head(text, 250)
		if !h.takes("POST", "/v1/tasks?wait=60s", quote(t, map[string]any{"id": fmt.Sprintf("e%d", i), "input": "hi", "labels": map[string]string{"evalSuite": suite, "evalCase": suite, head(text, 60): suite}})) {
			continue
		}
		if taken++; taken%4 == 0 {
			pages["suites/"+url.PathEscape(suite)] = "By case"
			pages["runs?columns=id,labels&label="+url.QueryEscape("evalSuite="+suite)] = "found"
		}
	}
	if taken < 60 {
		t.Errorf("%d sets of labels were taken", taken)
	}
	h.visits(pages)
}

// Names of files are text: those that a task brings, and those that a run writes.
func TestHostileFileNames(t *testing.T) {
	var play strings.Builder
	play.WriteString("scenes:\n  - match: write\n    turns:\n")
	brought := []any{}
	for i, text := range hostile() {
		name := fmt.Sprintf("%s%d", head(text, 100), i)
		fmt.Fprintf(&play, "      - {text: x, calls: [{name: write_file, arguments: %s}]}\n", quote(t, map[string]string{"filePath": "w/" + name, "content": head(text, 2000)}))
		brought = append(brought, map[string]any{"path": strings.ReplaceAll(name, "/", "_"), "data": base64.StdEncoding.EncodeToString([]byte(head(text, 2000)))})
	}
	play.WriteString("      - {text: written}\n  - match: \"\"\n    turns: [{text: hello}]\n")
	h := open(t, settings.AuthOff, play.String())
	files := []any{}
	for i, f := range brought {
		if h.takes("POST", "/v1/tasks?wait=60s", quote(t, map[string]any{"id": fmt.Sprintf("b%d", i), "input": "hi", "files": []any{f}})) {
			files = append(files, f)
		}
	}
	if len(files) < 50 {
		t.Errorf("%d names were taken", len(files))
	}
	h.must(http.StatusOK, "PUT", "/v1/agents/writer", `{"name":"writer","tools":["write_file"],"maxSteps":200}`)
	h.submit(quote(t, map[string]any{"id": "brought", "input": "hi", "files": files}), true)
	h.submit(`{"id":"written","agent":"writer","input":"write"}`, true)
	for _, run := range []string{"brought", "written"} {
		page := "runs/" + run + "?tab=files"
		h.visits(map[string]string{page: "Size", "runs/" + run: "Result"})
		h.dialogs(page, "tr:nth-child(4n) td.id button")
		h.do(chromedp.Navigate(h.url + "/" + page))
		h.shows("Size")
		h.photograph("hostile_"+run, "light", 390)
	}
}

// Names of keys are text, also that of who is signed in, which is on each page.
func TestHostileKeyNames(t *testing.T) {
	h := open(t, settings.AuthOn, script)
	client, err := h.dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const name = "<img src=x onerror=window.canary=1>\u202eanna\x1b[31m"
	admin, _, err := client.Keys().Create(t.Context(), dispatcher.KeySpec{Tenant: "*", Roles: []control.AccessRole{control.RoleAdmin}, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for _, text := range hostile() {
		status, answer := h.ask("POST", "/v1/keys", quote(t, map[string]any{"name": head(text, 60), "tenant": "acme", "roles": []string{"viewer"}}), "Authorization", "Bearer "+admin)
		if status == http.StatusCreated || status == http.StatusOK {
			taken++
		} else if status != http.StatusBadRequest {
			t.Errorf("%q: %d %v", head(text, 60), status, answer)
		}
		if status, answer = h.ask("POST", "/v1/keys", quote(t, map[string]any{"tenant": text, "roles": []string{text}}), "Authorization", "Bearer "+admin); status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge {
			t.Errorf("tenant %q: %d %v", head(text, 60), status, answer)
		}
	}
	if taken < 60 {
		t.Errorf("%d names were taken", taken)
	}
	h.signInWith(admin)
	h.shows("Overview")
	h.visits(map[string]string{"keys": "acme", "audit": "keys.create", "runs": "No runs"})
	h.do(chromedp.Navigate(h.url+"/keys"), chromedp.WaitVisible("td button"))
	h.photograph("hostile_keys", "light", 390)
}

// An address may come from anywhere: what it names and how it filters is text, and a page that does not exist says so.
func TestHostileAddresses(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.submit(`{"id":"r","input":"hi"}`, true)
	pages := map[string]string{
		"runs/%FF": "Page not found", "runs?columns=constructor,__proto__,id,toString": "found", "?span=constructor": "Newest runs", "runs?since=1e999": "Runs", "runs?since=constructor": "Runs",
		"runs/r?tab=constructor": "Result", "runs?after=%FF": "Runs", "dead-letters?after=-1": "Dead letters", "compare/r/": "Choose two runs", "compare/r/r/r": "Compare",
	}
	for i, text := range hostile() {
		if i%8 != 0 {
			continue
		}
		id, value := url.PathEscape(head(text, 200)), url.QueryEscape(head(text, 200))
		if strings.Trim(head(text, 200), "\n") == "" {
			continue
		}
		for view, says := range map[string]string{"runs": "Run", "agents": "Agent", "prompts": "Prompt", "sessions": "Session", "batches": "Batch", "schedules": "Schedule", "memory": "Memory", "tools": "Tool", "suites": "Suite"} {
			if i%24 == 0 {
				pages[view+"/"+id] = says
			}
		}
		pages["compare/r/"+id] = "Compare"
		pages["runs?agent="+value+"&label="+value+"&code="+value+"&q="+value+"&session="+value+"&status="+value] = "Runs"
		pages["try?agent="+value] = "Try it"
	}
	h.visits(pages)
	for _, name := range []string{"a b", "<script>window.canary=1</script>", "\u202egnp", "é", strings.Repeat("a", 65)} { // no tenant has it, so that the page has no content
		h.do(chromedp.Navigate(h.url + "/runs?tenant=" + url.QueryEscape(name)))
		h.shows("must be 1 to 64 characters")
		if out := eval[[]string](h, unseen); len(out) > 0 {
			t.Errorf("tenant %q: not seen in %q", name, out)
		}
		h.do(chromedp.Click(`//a[contains(.,"Continue without the tenant")]`))
		h.shows("found")
	}
}

// Who approves, copies or edits something sees each character of it, and what comes of it is what was there.
func TestNothingIsHiddenWhereOneActs(t *testing.T) {
	const text, tool = "pay \u202e\U000e0061it's \\ \t\x1b[201~\x03\u00ad é\nnext", "a], x: [\"b\u202e\n"
	h := open(t, settings.AuthOff, fmt.Sprintf("scenes: [{match: pay, turns: [{text: x, calls: [{name: write_file, arguments: %s}]}, {text: x, calls: [{name: %s, arguments: {}}]}, {text: done}]}]",
		quote(t, map[string]string{"filePath": "a.txt", "content": text}), quote(t, tool)))
	seen := func(of string) string {
		t.Helper()
		if strings.ContainsFunc(of, func(r rune) bool { return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) }) {
			t.Errorf("not all of %q is seen", of)
		}
		return of
	}
	h.must(http.StatusAccepted, "POST", "/v1/tasks", quote(t, map[string]any{"id": "a", "agent": "asker", "input": text, "labels": map[string]string{"k": text}}))
	h.do(chromedp.Navigate(h.url+"/inbox"), chromedp.Click(button("Change the arguments")), chromedp.WaitVisible("textarea[name=arguments]"))
	var args struct {
		Content string `json:"content"`
	}
	if err := json.Unmarshal([]byte(seen(eval[string](h, `document.querySelector("textarea[name=arguments]").value`))), &args); err != nil || args.Content != text {
		t.Errorf("the arguments are %q, %v", args.Content, err)
	}
	h.do(chromedp.Click(button("Approve with these arguments")))
	h.shows("Nothing waits for you")
	h.ends(h.url, "a")

	h.do(chromedp.Navigate(h.url+"/runs/a"), chromedp.Click(button("Copy as command")), chromedp.WaitVisible("dialog .command"))
	for _, command := range eval[[]string](h, `[...document.querySelectorAll("dialog .command pre")].map((p) => p.textContent)`)[:2] {
		sh := exec.CommandContext(t.Context(), "bash", "-c", "set -- "+seen(command)+`; printf %s "${@: -1}"`)
		sh.Env = []string{"LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH")}
		last, err := sh.Output()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		var task struct {
			Input string `json:"input"`
		}
		if task.Input = string(last); strings.HasPrefix(command, "curl") {
			task.Input = ""
			if err := json.Unmarshal(last, &task); err != nil {
				t.Fatalf("%s: %v", last, err)
			}
		}
		if task.Input != text {
			t.Errorf("%q is the command of %q", command, task.Input)
		}
	}

	h.do(chromedp.Click("dialog button[aria-label=Close]"), chromedp.Click(button("Add to a suite")), chromedp.WaitVisible("dialog .command"))
	read, err := document.Only([]byte(seen(eval[string](h, `document.querySelector("dialog .command pre").textContent`))), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Input  string `json:"input"`
		Expect struct {
			Tools []string `json:"tools"`
		} `json:"expect"`
	}
	if err := json.Unmarshal(read.JSON, &cases); err != nil || len(cases) != 1 || cases[0].Input != text || !slices.Equal(cases[0].Expect.Tools, []string{"write_file", tool}) {
		t.Errorf("the case is %q, %v", cases, err)
	}

	h.must(http.StatusOK, "PUT", "/v1/agents/mate", quote(t, map[string]any{"name": "mate", "instructions": text}))
	h.do(chromedp.Navigate(h.url+"/agents/mate"), chromedp.WaitVisible(".editor textarea"))
	definition := seen(eval[string](h, `document.querySelector(".editor textarea").value`))
	h.fill(".editor textarea", strings.Replace(definition, "pay", "give", 1))
	h.do(chromedp.Click(`//button[normalize-space()="Store" and not(@disabled)]`))
	h.shows("Stored as revision")
	if _, agent := h.ask("GET", "/v1/agents/mate", ""); agent["instructions"] != strings.Replace(text, "pay", "give", 1) {
		t.Errorf("stored is %q", agent["instructions"])
	}
}
