package evaluation_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/evaluation"
	"github.com/longshore-run/longshore/messages"
)

// openFleet is a fleet with the built-in script, and a client of it.
func openFleet(t *testing.T, noWorker bool) *dispatcher.Client {
	t.Helper()
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 8, MaxAttempts: 5}}, Abrupt: true, Version: "0.0.0", NoWorker: noWorker,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func shipped(t *testing.T, name string) *evaluation.Suite {
	t.Helper()
	data, err := os.ReadFile("../../deploy/examples/evals/" + name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := evaluation.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRun(t *testing.T) {
	client := openFleet(t, false)
	t.Run("the suite that is shipped passes", func(t *testing.T) {
		var seen []evaluation.Progress
		r, err := evaluation.Run(t.Context(), client, shipped(t, "demo.yaml"), evaluation.Options{
			Progress: func(p evaluation.Progress) { seen = append(seen, p) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Passed || r.Runs != 4 || r.Good != 4 || r.Rate != 1 || r.Completed != 2 || r.Tools.Calls != 6 || r.Tools.Errors != 0 ||
			r.Steps.Max != 3 || r.Steps.Mean != 2 || r.Usage.Tokens.Total == 0 {
			t.Errorf("%+v", r)
		}
		if len(seen) != 4 || seen[3] != (evaluation.Progress{Done: 4, Passed: 4, All: 4}) {
			t.Errorf("%+v", seen)
		}
	})
	t.Run("one fails and says why", func(t *testing.T) {
		r, err := evaluation.Run(t.Context(), client, shipped(t, "failing.yaml"), evaluation.Options{Parallel: 1})
		if err != nil {
			t.Fatal(err)
		}
		if r.Passed || r.Good != 1 || len(r.Cases) != 3 || !r.Cases[0].Passed || len(r.Cases[1].Why) != 1 || len(r.Cases[2].Why) != 2 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("an undefined agent is the suite's mistake", func(t *testing.T) {
		_, err := evaluation.Run(t.Context(), client, shipped(t, "extraction.yaml"), evaluation.Options{})
		bad, ok := errors.AsType[*evaluation.BadCase](err)
		if !ok || bad.Case != "invoice" || !errors.Is(err, dispatcher.ErrUnknownAgent) {
			t.Errorf("%v", err)
		}
	})
	t.Run("too many runs", func(t *testing.T) {
		_, err := evaluation.Run(t.Context(), client, shipped(t, "demo.yaml"), evaluation.Options{Repeat: 1 << 20})
		if _, ok := errors.AsType[*messages.FieldError](err); !ok {
			t.Errorf("%v", err)
		}
	})
}

// A run that no worker takes fails its case after the suite's timeout, and is cancelled.
func TestRunsThatTakeTooLong(t *testing.T) {
	client := openFleet(t, true)
	s := parse(t, `{timeout: 500ms, cases: [{name: slow, input: hi, expect: {maxCost: 1}}]}`)
	r, err := evaluation.Run(t.Context(), client, s, evaluation.Options{Tenant: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Passed || len(r.Cases[0].Why) != 1 || !strings.Contains(r.Cases[0].Why[0], "took more than 500ms") || r.Usage.Cost != nil {
		t.Errorf("%+v", r)
	}
	st, err := client.Status(t.Context(), messages.Ref{Tenant: "other", Run: r.Cases[0].ID})
	if err != nil || st.Status != messages.StatusCancelled {
		t.Errorf("%+v, %v", st, err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := evaluation.Run(stopped, client, s, evaluation.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
