package browser_test

import (
	"io"
	"net/http"
	"strings"

	"github.com/nats-io/nats.go"
)

// must makes a request past the browser that has a status.
func (h *hall) must(status int, method, path, body string, headers ...string) map[string]any {
	h.Helper()
	got, answer := h.ask(method, path, body, headers...)
	if got != status {
		h.Fatalf("%s %s: %d %v", method, path, got, answer)
	}
	return answer
}

// ends waits until a run has ended.
func (h *hall) ends(url, run string) {
	h.Helper()
	resp, err := http.Get(url + "/v1/tasks/" + run + "/events?types=run_finished")
	if err != nil {
		h.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body) // the stream ends with the run
	if _ = resp.Body.Close(); err != nil {
		h.Fatal(err)
	}
}

// publish sends a message past all checks.
func (h *hall) publish(subject, body string) {
	h.Helper()
	nc, err := nats.Connect(h.dev.NATS)
	if err != nil {
		h.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Request(subject, []byte(body), patience); err != nil {
		h.Fatal(err)
	}
}

// What a view must find room for: the longest name, and a word that has no place to break.
var longName, longWord = strings.Repeat("l", 64), strings.Repeat("word", 500)

// furnish gives the fleet something of everything that a view shows.
func (h *hall) furnish() {
	h.Helper()
	h.must(http.StatusOK, "POST", "/v1/tasks?wait=60s", `{"id":"r","input":"write","session":"s","workspace":"w","labels":{"team":"harbour"}}`)
	h.must(http.StatusAccepted, "POST", "/v1/tasks", `{"id":"a","agent":"asker","input":"write"}`)
	h.must(http.StatusAccepted, "POST", "/v1/tasks", `{"id":"q","agent":"curious","input":"paint"}`)
	h.must(http.StatusOK, "PUT", "/v1/agents/"+longName, `{"name":"`+longName+`","description":"`+longWord+`","instructions":"`+longWord+`"}`)
	h.must(http.StatusOK, "POST", "/v1/tasks?wait=60s", `{"id":"`+longName+`","agent":"`+longName+`","input":"`+longWord+`","session":"`+longName+`","labels":{"`+longName+`":"`+longWord[:200]+`"}}`)
	h.must(http.StatusOK, "PUT", "/v1/schedules/nightly", `{"cron":"0 3 * * *","timeZone":"Europe/Berlin","task":{"input":"hi"}}`)
	h.must(http.StatusOK, "PUT", "/v1/prompts/greeting", `{"name":"Greeting","text":"Hello {name}","requiredVars":["name"],"tags":["polite"]}`)
	h.must(http.StatusOK, "PUT", "/v1/quotas/tenant/acme", `{"maxRunning":3,"costPerDay":10}`)
	h.must(http.StatusOK, "POST", "/v1/pauses", `{"kind":"agent","name":"idle","reason":"it is tried out","by":"ann"}`)
	h.must(http.StatusAccepted, "POST", "/v1/tasks", `{"id":"p","agent":"idle","input":"hi"}`)
	h.publish("tasks.normal.default.bad", `{"input":"hi","agent":"unknown"}`)
	h.batch("nightly", "skipInvalid=true", "{\"input\":\"hi\"}\n{\"input\":1}\n")
}

// batch submits one, under a name that is its id too.
func (h *hall) batch(id, query, lines string) {
	h.Helper()
	resp, err := http.Post(h.url+"/v1/batches?id="+id+"&name="+id+"&"+query, "application/x-ndjson", strings.NewReader(lines))
	if err != nil {
		h.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
		h.Fatal(resp.Status)
	}
}
