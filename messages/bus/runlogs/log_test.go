package runlogs_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/runlog/runlogtest"
)

func TestBusIsALog(t *testing.T) {
	t.Run("in-process", func(t *testing.T) {
		b, _ := bustest.OpenNew(t)
		testLog(t, bustest.Logs(b))
	})
	t.Run("tcp", func(t *testing.T) {
		s := bustest.Start(t)
		nc, err := bus.Connect(bustest.Context(t), bus.ConnConfig{URL: s.NATSURL})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		b, _ := bustest.OpenOver(t, nc, bus.Config{})
		testLog(t, bustest.Logs(b))
	})
	t.Run("in four streams", func(t *testing.T) {
		b, _ := bustest.OpenDivided(t, 4)
		testLog(t, bustest.Logs(b))
	})
	t.Run("sealed", func(t *testing.T) {
		b, _ := bustest.OpenNew(t)
		testLog(t, runlogs.New(b, runlogs.Config{Sealer: newSealer(t, b)}))
	})
}

func testLog(t *testing.T, logs *runlogs.Store) {
	t.Helper()
	runlogtest.Run(t, func(*testing.T) runlog.Log { return logs })
}

// newSealer is a keyring with a master keyset of its own.
func newSealer(tb testing.TB, b *bus.Bus) *keyring.Keyring {
	tb.Helper()
	master, err := keyring.NewMaster()
	if err != nil {
		tb.Fatal(err)
	}
	return keyring.New(b, keyring.Config{Master: master})
}

// The end of a run that has ended is read from whichever replica answers. Without an answer, without the right to ask and while there is no
// end, the leader says what there is.
func TestEndHeard(t *testing.T) {
	t.Parallel()
	opened := func(cfg bus.Config) func(*testing.T) (*bus.Bus, func()) {
		return func(t *testing.T) (*bus.Bus, func()) {
			t.Helper()
			b, _ := bustest.Open(t, bustest.Start(t), cfg)
			return b, func() {}
		}
	}
	for name, open := range map[string]func(*testing.T) (_ *bus.Bus, lose func()){
		"a replica answers": opened(bus.Config{Direct: true}),
		"only the leader":   opened(bus.Config{}),
		"no replica answers": func(t *testing.T) (*bus.Bus, func()) {
			t.Helper()
			cfg := bustest.Quickly()
			cfg.Direct = true
			b, line, _ := bustest.OpenLossy(t, cfg)
			return b, func() { line.Lose("$JS.API.DIRECT.GET.RUNS", false) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, lose := open(t)
			ctx, logs, run := bustest.Context(t), bustest.Logs(b), bustest.Run()
			if _, ok, err := logs.End(ctx, run, true); ok || err != nil {
				t.Errorf("of a run that has not begun: %t, %v", ok, err)
			}
			at := bustest.MustAppend(t, logs, run, 0, bustest.Step("one", 1))
			e, ok, err := logs.End(ctx, run, true)
			if err != nil || !ok || e.Seq != at || len(e.Records) > 0 {
				t.Errorf("of a run that works: %+v, %t, %v", e, ok, err)
			}
			end := &record.Finished{Result: messages.AgentResult{ID: run.Run, Status: messages.StatusCompleted, Result: "ok"}}
			last := record.Entry{Head: record.Follow(e.Head, end), Records: []record.Record{end}}
			last.Head.ID, last.Head.Time = "two", time.Now().UTC()
			at = bustest.MustAppend(t, logs, run, at, last)
			lose()
			e, ok, err = logs.End(ctx, run, true)
			if err != nil || !ok || e.Seq != at || len(e.Records) != 1 {
				t.Fatalf("of a run that has ended: %+v, %t, %v", e, ok, err)
			}
			if got, is := e.Records[0].(*record.Finished); !is || got.Result.Result != "ok" {
				t.Errorf("its end is %+v", e.Records[0])
			}
		})
	}
}
