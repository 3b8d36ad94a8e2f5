//go:build unix

package fleet_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
)

// An address is in a task, in calls, results and answers of a run. Its log and its result have it; what the world sees of the run
// and what is kept in Redis have not, unless the policy of the agent says so.
func TestPersonalDataStaysInLogAndResult(t *testing.T) {
	t.Parallel()
	address := "jo." + strings.ToLower(rand.Text()) + "@example.com"
	w := open(t, shortAckWait, func(c *modelCall) reply {
		if c.Turn < 3 {
			return reply{Text: "I write to " + address + " now.", Tool: "write_file", Args: map[string]string{
				"filePath": fmt.Sprintf("f%d.txt", c.Turn), "content": "mail " + address,
			}}
		}
		return reply{Text: "Wrote to " + address + "."}
	})
	for name, p := range map[string]string{
		"closed": `{}`, "open": `{"events":{"redact":false},"memory":"keep"}`, "terse": `{"events":{"inputs":"exclude","outputs":"exclude","redact":false},"memory":"drop"}`,
	} {
		def := messages.Definition{Name: name, Tools: []string{"write_file"}, Policy: &messages.Policy{}}
		if err := json.Unmarshal([]byte(p), def.Policy); err != nil {
			t.Fatal(err)
		}
		def.SetDefaults()
		if _, _, err := catalog.New(w.bus).PutAgent(t.Context(), def); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	live := map[string]int{} // messages of live text with the address, by run
	sub, err := w.nc.Subscribe("live.>", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		_, run, _ := strings.Cut(strings.TrimPrefix(m.Subject, "live."), ".")
		live[run] += bytes.Count(m.Data, []byte(address))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	worker := w.worker("a", "LONGSHORE_LOG_LEVEL=debug")
	redis := (&store{url: w.redis}).client(t)
	for _, tc := range []struct {
		agent            string
		events, remember bool // they hold the address
	}{{"closed", false, false}, {"open", true, true}, {"terse", true, false}} {
		run := w.submit("Write to "+address, func(t *messages.Task) { t.Agent = tc.agent })
		g := w.watch(run)
		r := g.end()
		if r.Status != messages.StatusCompleted || fmt.Sprint(r.Result) != "Wrote to "+address+"." {
			t.Fatalf("%s: result %+v", tc.agent, r)
		}
		calls := 0
		for _, e := range g.events {
			if has := bytes.Contains(e.Data, []byte(address)); has && !tc.events {
				t.Errorf("%s: %s holds it: %s", tc.agent, e.Name(), e.Data)
			} else if has && strings.HasPrefix(e.Name(), "tool_execution") {
				calls++
			}
		}
		if (calls > 0) != (tc.agent == "open") {
			t.Errorf("%s: %d events of calls hold it", tc.agent, calls)
		}
		held := w.held(run, address)
		if held["RUNS"] == 0 || (held["EVENTS"] > 0) != tc.events || held["LOGS"] > 0 {
			t.Errorf("%s: streams hold it %v", tc.agent, held)
		}
		if remembered := strings.Contains(dump(t, redis, run.Run), address); remembered != tc.remember {
			t.Errorf("%s: Redis holds it: %v", tc.agent, remembered)
		}
		mu.Lock()
		if live[run.Run] > 0 && !tc.events {
			t.Errorf("%s: live text holds it", tc.agent)
		}
		mu.Unlock()
	}
	for _, p := range []*process{worker, w.dev} {
		if log := strings.Join(p.log(), "\n"); strings.Contains(log, address) {
			t.Errorf("the log of %s holds it", p.name)
		}
	}
}

// held counts the messages about a run that hold a text, by stream.
func (w *town) held(run messages.Ref, text string) map[string]int {
	w.t.Helper()
	js, err := jetstream.New(w.nc)
	if err != nil {
		w.t.Fatal(err)
	}
	counts := map[string]int{}
	for info := range js.ListStreams(w.t.Context()).Info() {
		stream, err := js.Stream(w.t.Context(), info.Config.Name)
		if err != nil {
			w.t.Fatal(err)
		}
		for seq := info.State.FirstSeq; seq <= info.State.LastSeq && info.State.Msgs > 0; seq++ {
			m, err := stream.GetMsg(w.t.Context(), seq)
			if err == nil && strings.Contains(m.Subject, run.Run) && bytes.Contains(m.Data, []byte(text)) {
				counts[info.Config.Name]++
			}
		}
	}
	return counts
}

// dump is all that Redis holds about a run.
func dump(t *testing.T, c *redis.Client, run string) string {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*"+run+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, k := range keys {
		if fields, err := c.HGetAll(t.Context(), k).Result(); err == nil {
			fmt.Fprintln(&all, k, fields)
		}
	}
	return all.String()
}
