package browser_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// routed is a worker's router before two providers: one that answers, and one that always fails.
func routed(t *testing.T) model.Provider {
	t.Helper()
	endpoint := func(name, play string) model.Endpoint {
		scenes, err := scripted.Parse([]byte(play))
		if err != nil {
			t.Fatal(err)
		}
		return model.Endpoint{Name: name, Model: "quay-1", Provider: scripted.New(scenes)}
	}
	r, err := model.NewRouter(model.RouterConfig{
		Endpoints: []model.Endpoint{endpoint("steady", script), endpoint("broken", `scenes: [{match: "", turns: [{error: {class: overloaded, message: full}}]}]`)},
		Default:   "steady", Retry: model.RetryConfig{Retries: -1}, Breaker: model.BreakerConfig{Failures: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The overview tells how providers do and what is spent of quotas; the tools tell what they are for, who has them and how calls went.
func TestProvidersAndTools(t *testing.T) {
	h := openOn(t, settings.AuthOff, routed(t))
	put := func(path, body string) {
		if status, answer := h.ask("PUT", path, body); status != http.StatusOK {
			t.Fatalf("%d %v", status, answer)
		}
	}
	put("/v1/agents/careful", `{"name":"careful","models":["broken","steady"],"tools":["write_file"]}`)
	put("/v1/quotas/tenant/default", `{"costPerDay":5}`)
	h.submit(`{"id":"r","agent":"careful","input":"write"}`, true)
	h.do(chromedp.Navigate(h.url + "/"))
	h.shows("circuit open")
	h.shows("model_overloaded")
	h.shows("healthy")
	h.shows("$0 of $5.00")
	h.picture("providers")

	h.do(chromedp.Click(link("Tools")))
	h.shows("write_file")
	row := `[...document.querySelectorAll("tr")].find((r) => r.textContent.startsWith("write_file"))?.innerText ?? ""`
	h.do(until(`(` + row + `).includes("ms")`))
	h.picture("tools")
	h.do(chromedp.Click(`//a[normalize-space()="write_file"]`))
	h.shows("Agents that have it")
	h.shows("careful")
	h.shows("filePath")
	h.picture("tool")
}

// Items of memory are listed and searched, tell where they came from, and are removed after their number is confirmed.
func TestMemoryInTheConsole(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	h.do(chromedp.Click(link("Memory")))
	h.shows("Nothing is remembered yet")
	items := `{"items":[{"id":"berth-4","text":"Berth 4 takes ships of up to 180 m","subject":"berths","source":{"document":"port.pdf","part":2}},` +
		`{"id":"tide","text":"High tide is at nine","source":{"run":"r-1","step":3}}]}`
	if status, answer := h.ask("PUT", "/v1/memory/notes/items", items); status != http.StatusOK {
		t.Fatalf("%d %v", status, answer)
	}
	h.do(chromedp.Navigate(h.url+"/memory"), chromedp.Click(`//a[normalize-space()="notes"]`))
	h.shows("port.pdf, part 3")
	h.shows("r-1, step 3")
	h.picture("memory")
	h.fill("input[data-search]", "ships")
	h.do(until(`!document.body.innerText.includes("High tide") && document.body.innerText.includes("Berth 4")`))
	h.do(chromedp.Click(button("berth-4")))
	h.shows("Berth 4 takes ships of up to 180 m")
	h.do(chromedp.Click(`dialog button[aria-label=Close]`), chromedp.Click(`input[aria-label="Choose item berth-4"]`), chromedp.Click(button("Remove 1")))
	h.shows("1 item will be removed")
	h.do(chromedp.Click(button("Remove 1 item")))
	h.shows("Nothing matches")
	if _, left := h.ask("GET", "/v1/memory/notes/items", ""); len(left["items"].([]any)) != 1 {
		t.Errorf("left are %v", left)
	}
}

// Runs of a suite are shown by the revision of their agent, and by case.
func TestSuitesByRevision(t *testing.T) {
	h := open(t, settings.AuthOff, script)
	revisions := []string{}
	for _, text := range []string{"one", "two"} {
		status, answer := h.ask("PUT", "/v1/agents/sailor", `{"name":"sailor","instructions":"`+text+`"}`)
		if status != http.StatusOK {
			t.Fatalf("%d %v", status, answer)
		}
		revisions = append(revisions, fmt.Sprintf("sailor@%.0f", answer["revision"]))
		h.submit(`{"id":"run-`+text+`","agent":"sailor","input":"hi","labels":{"evalSuite":"greetings","evalCase":"short"}}`, true)
	}
	h.do(chromedp.Click(link("Evaluation")))
	h.shows("greetings")
	h.do(chromedp.Click(`//a[normalize-space()="greetings"]`))
	h.shows("By case")
	for _, r := range revisions {
		h.shows(r)
	}
	h.picture("suite")
	if n := eval[int](h, `document.querySelectorAll('[aria-label="Results by revision"] tbody tr').length`); n != 2 {
		t.Errorf("%d revisions", n)
	}
}
