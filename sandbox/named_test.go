package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
)

func named(t *testing.T, dir string) *sandbox.Workspaces {
	t.Helper()
	w, err := sandbox.NewWorkspaces(dir, sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// Two openings of the same root stand for two processes.
func TestNamedIsForOneAtATime(t *testing.T) {
	dir := t.TempDir()
	here, there := named(t, dir), named(t, dir)
	first, err := here.Named(t.Context(), "acme", "shared")
	if err != nil {
		t.Fatal(err)
	}
	write(t, first, "a.txt", "one")
	gone := errors.New("gone")
	for _, w := range []*sandbox.Workspaces{here, there} {
		ctx, cancel := context.WithCancelCause(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := w.Named(ctx, "acme", "shared")
			failed <- err
		}()
		select {
		case err := <-failed:
			t.Errorf("it did not wait: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		cancel(gone)
		if err := <-failed; !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
	}
	for _, other := range []messages.Ref{{Tenant: "acme", Run: "other"}, {Tenant: "umbrella", Run: "shared"}} {
		w, err := there.Named(t.Context(), other.Tenant, other.Run)
		if err != nil {
			t.Fatal(err)
		}
		if got := list(t, w); len(got) != 0 {
			t.Errorf("%v holds %v", other, got)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	next := make(chan *sandbox.Workspace)
	go func() {
		w, err := there.Named(t.Context(), "acme", "shared")
		if err != nil {
			t.Error(err)
		}
		next <- w
	}()
	if err := errors.Join(first.Close(), first.Close()); err != nil {
		t.Error(err)
	}
	w := <-next
	defer func() { _ = w.Close() }()
	if data, err := w.Read("a.txt"); err != nil || string(data) != "one" {
		t.Errorf("got %q, %v", data, err)
	}
}

// A run of the same name has other files, and names stay in their folder.
func TestNamedNames(t *testing.T) {
	all := named(t, t.TempDir())
	shared, err := all.Named(t.Context(), "acme", "x")
	if err != nil {
		t.Fatal(err)
	}
	write(t, shared, "a.txt", "one")
	if err := shared.Close(); err != nil {
		t.Error(err)
	}
	own, err := all.Open(messages.Ref{Tenant: "acme", Run: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Close() }()
	if got := list(t, own); len(got) != 0 {
		t.Errorf("the run sees %v", got)
	}
	for _, ref := range []messages.Ref{
		{Tenant: "acme", Run: ""},
		{Tenant: "acme", Run: "../x"},
		{Tenant: "acme", Run: "a.b"},
		{Tenant: "acme", Run: strings.Repeat("x", 65)},
		{Tenant: "a/b", Run: "x"},
		{Tenant: "..", Run: "x"},
		{Tenant: "", Run: "x"},
	} {
		if _, err := all.Named(t.Context(), ref.Tenant, ref.Run); err == nil {
			t.Errorf("%v: got no error", ref)
		}
	}
}
