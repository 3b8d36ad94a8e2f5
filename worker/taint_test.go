package worker_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/memory"
	"github.com/longshore-run/longshore/worker/policy"
)

const reading = `
scenes:
  - match: read
    turns:
      - text: I read.
        calls: [{name: look, arguments: {what: accounts}}, {name: fetch, arguments: {what: page}}]
      - text: The code is 4711.
  - match: idle
    turns:
      - text: All is well.
  - match: send
    turns:
      - text: I send.
        calls: [{name: mail, arguments: {what: it}}]
      - text: It is sent.
`

// What runs of a session have read is in the conversation of those that follow, also in the words of an answer: their calls of egress
// tools wait for a person as well. Whether a cache has the conversation makes no difference.
func TestTaintStaysInASession(t *testing.T) {
	for name, cached := range map[string]bool{"from the log": false, "from the cache": true} {
		t.Run(name, func(t *testing.T) {
			h := open(t, 30*time.Second, messages.Definition{Name: "a", Tools: []string{"look", "fetch", "mail"}})
			var short *memory.ShortTerm
			if cached {
				opt, err := redis.ParseURL(h.servers.RedisURL)
				if err != nil {
					t.Fatal(err)
				}
				rdb := redis.NewClient(opt)
				t.Cleanup(func() { _ = rdb.Close() })
				if short, err = memory.New(rdb, memory.Config{}); err != nil {
					t.Fatal(err)
				}
				h.run(short.Run)
				h.conversations = conversationCache{short}
			}
			h.policies = func(string) []policy.Layer {
				return []policy.Layer{{Source: "fleet", Policy: &messages.Policy{Taint: &messages.TaintRule{
					Private: []string{"look"}, Untrusted: []string{"fetch"}, Egress: []string{"mail"},
				}}}}
			}
			mail := newCrane(t, "mail", messages.EffectOnce, false)
			h.worker("w1", script(t, reading), worker.Config{}, newCrane(t, "look", messages.EffectRead, false), newCrane(t, "fetch", messages.EffectRead, false), mail)
			for _, said := range []string{"read", "idle"} {
				run := h.submit(messages.Task{Agent: "a", Session: "s", Input: messages.TextInput(said)})
				if r := h.result(run); !r.Success {
					t.Fatalf("%s: %+v", said, r.Error)
				}
				if cached {
					eventually(t, "the conversation is cached", func() bool {
						kept, ok := short.Load(t.Context(), messages.Ref{Tenant: messages.DefaultTenant, Run: "s"})
						return ok && kept.EntryID == run.Run
					})
				}
			}
			other := h.submit(messages.Task{Agent: "a", Session: "other", Input: messages.TextInput("send")})
			if h.result(other); mail.calls.Load() != 1 {
				t.Error("a run of another session waits")
			}
			run := h.submit(messages.Task{Agent: "a", Session: "s", Input: messages.TextInput("send")})
			h.until(run, messages.EventRunWaiting)
			if mail.calls.Load() != 1 {
				t.Error("the call was made before a person agreed")
			}
			if cached && short.Stats().Hits == 0 {
				t.Error("the conversation was not read from the cache")
			}
		})
	}
}
