//go:build unix

package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/database"
)

// TestKilledRebuild kills a dispatcher in the middle of a rebuild of the run index. The next one continues where it was, and each
// event counts once.
func TestKilledRebuild(t *testing.T) {
	t.Parallel()
	const runs = 4000 // with texts so long that a transaction has a few hundred of them
	servers := embeddedtest.Start(t)
	file := filepath.Join(t.TempDir(), "index.db")
	env := []string{"NATS_URL=" + servers.NATSURL, "LONGSHORE_HTTP_ADDR=127.0.0.1:0", "LONGSHORE_AUTH=off", "LONGSHORE_INDEX=" + file}
	start := func(name string) *process {
		p := spawn(t, name, env, binary, "dispatcher")
		p.line(`"message":"ready"`)
		return p
	}
	running := start("first")
	w := &town{t: t, dir: t.TempDir(), nats: servers.NATSURL, redis: servers.RedisURL}
	w.connect()
	storeRuns(t, w.nc, runs)
	status := func() *control.IndexStatus {
		t.Helper()
		s, err := w.client.Index().Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	until := func(what string, is func(*control.IndexStatus) bool) *control.IndexStatus {
		t.Helper()
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(time.Minute); ; <-tick.C {
			s := status()
			if is(s) {
				return s
			}
			if time.Now().After(end) {
				t.Fatalf("not so after a minute: %s: %+v", what, s)
			}
		}
	}
	epoch, at := 0, 2*runs
	for try := 1; at == 2*runs; try++ { // a rebuild may end before it is killed
		if try > 5 {
			t.Fatal("no rebuild was killed in the middle")
		}
		until("the index has everything", func(s *control.IndexStatus) bool { return s.Last > 0 && s.Behind == 0 })
		if err := w.client.Index().Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		until("a part is applied again", func(s *control.IndexStatus) bool { return s.Position > 0 })
		running.kill()
		if epoch, at = indexAt(t, file); at == 2*runs {
			running = start("again")
		}
	}
	start("second")
	until("the index has everything again", func(s *control.IndexStatus) bool { return s.Last > 0 && s.Behind == 0 })
	if now, _ := indexAt(t, file); now != epoch {
		t.Errorf("it began anew: its rows are of epoch %d, those of the rebuild were of %d", now, epoch)
	}
	stats, err := w.client.Runs().Stats(t.Context(), dispatcher.RunFilter{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if n := stats.Total; n.Runs != runs || n.ModelCalls != runs || n.Tokens != 3*runs {
		t.Errorf("%d runs with %d calls and %d tokens, want %d with one call and three tokens each", n.Runs, n.ModelCalls, n.Tokens, runs)
	}
}

// indexAt is the epoch of the rows of an index, which each beginning makes another one, and its position.
func indexAt(t *testing.T, file string) (epoch, position int) {
	t.Helper()
	db, err := database.Open(database.Config{Where: file, What: "the index"})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Read(t.Context(), func(ctx context.Context, tx *database.Tx) error {
		return tx.One(ctx, []any{&epoch, &position}, "SELECT epoch, position FROM longshore_index")
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return epoch, position
}

// storeRuns stores the events of runs that each called a model once.
func storeRuns(t *testing.T, nc *nats.Conn, runs int) {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(512))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().UTC()
	streams := len(bustest.EventStreams(t, nc))
	for i := range runs {
		run := messages.Ref{Tenant: messages.DefaultTenant, Run: fmt.Sprintf("run-%05d", i)}
		for n, data := range []any{
			messages.RunQueued{Agent: "a", Priority: messages.PriorityNormal, Input: strings.Repeat("many words ", 1800), QueuedAt: at},
			messages.MessageEnd{StepID: "step-1", Role: messages.RoleAssistant, Usage: messages.Usage{Input: 1, Output: 2, Total: 3}},
		} {
			name := []string{messages.EventRunQueued, messages.EventMessageEnd}[n]
			body, err := json.Marshal(data)
			if err != nil {
				t.Fatal(err)
			}
			e := messages.Event{
				SpecVersion: "1.0", ID: fmt.Sprintf("%s.%d", run.Run, n+1), Source: messages.EventSource(run.Tenant), Type: messages.EventType(name),
				Subject: run.Run, Time: at, DataContentType: "application/json", Sequence: strconv.Itoa(n + 1), Data: body,
			}
			if body, err = json.Marshal(e); err != nil {
				t.Fatal(err)
			}
			if _, err := js.PublishAsync(bus.PartitionSubject(run.EventSubject(name), bus.PartitionOf(run, streams), streams), body, jetstream.WithStallWait(patience)); err != nil {
				t.Fatal(err)
			}
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}
