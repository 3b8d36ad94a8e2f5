//go:build unix

package fleet_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/worker/hooks"
)

// A worker process calls the hooks of an agent, signed, and refuses the agent when its host is not listed.
func TestHooksOfAnAgent(t *testing.T) {
	t.Parallel()
	const secret = "the-secret-of-hooks"
	told := make(chan messages.HookPoint, 99)
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var c messages.HookCall
		if err != nil || json.Unmarshal(body, &c) != nil || !hooks.Verify(secret, r.Header.Get(hooks.HeaderSignature), body, time.Now(), time.Hour) {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		told <- c.On
		if c.On == messages.HookPreTool {
			_, _ = io.WriteString(rw, `{"decision":"deny","reason":"`+secret+`"}`)
		}
	}))
	t.Cleanup(site.Close)
	w := open(t, shortAckWait, func(c *modelCall) reply {
		if c.Turn == 0 {
			return reply{Tool: "write_file", Args: map[string]string{"filePath": "a.txt", "content": "a"}}
		}
		return reply{Text: c.Last}
	})
	for name, url := range map[string]string{"hooked": site.URL + "/listed", "stray": "https://hooks.example.com/"} {
		def := messages.Definition{Name: name, Tools: []string{"write_file"}}
		for _, p := range messages.HookPoints() {
			def.Hooks = append(def.Hooks, messages.Hook{On: p, URL: url})
		}
		def.SetDefaults()
		if _, _, err := catalog.New(w.bus).PutAgent(t.Context(), def); err != nil {
			t.Fatal(err)
		}
	}
	w.worker("a", "LONGSHORE_HOOK_HOSTS="+strings.TrimPrefix(site.URL, "http://"), "LONGSHORE_HOOK_SECRET="+secret)
	agent := func(name string) func(*messages.Task) { return func(t *messages.Task) { t.Agent = name } }

	run := w.submit("write", agent("hooked"))
	if res := w.watch(run).end(); res.Result != "Refused by a hook: [redacted]" || res.Actions[0].Code != messages.CodePolicy {
		t.Errorf("result %+v", res)
	}
	counted := map[messages.HookPoint]int{}
	for counted[messages.HookOnTokens] == 0 || len(told) > 0 { // the end of the run does not wait for these hooks
		select {
		case point := <-told:
			counted[point]++
		case <-time.After(patience):
			t.Fatalf("on_tokens was not told: %v", counted)
		}
	}
	for point, want := range map[messages.HookPoint]int{
		messages.HookPreTask: 1, messages.HookStepStart: 2, messages.HookPreTool: 1, messages.HookPostTool: 0, messages.HookPostTask: 1, messages.HookOnError: 0,
	} {
		if counted[point] != want {
			t.Errorf("%s was told %d times, want %d", point, counted[point], want)
		}
	}
	stray := w.watch(w.submit("write", agent("stray"))).end()
	if stray.Error == nil || stray.Error.Code != messages.CodeInvalidInput || !strings.Contains(stray.Error.Message, "LONGSHORE_HOOK_HOSTS") {
		t.Errorf("result %+v", stray)
	}
}
