package runlog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// wakes are a queue that only counts.
type wakes struct{ runlog.Queue }

func (wakes) Wake(context.Context, messages.Ref, uint64) error { return nil }

// quiet is an outbox that takes all.
type quiet struct{ runlog.Outbox }

func (quiet) Flush(context.Context) error                  { return nil }
func (quiet) Finish(context.Context, messages.Event) error { return nil }

// unordered are heads that are not later than anything.
type unordered struct{ *runlog.WorkspacesInMemory }

func (u unordered) Workspace(ctx context.Context, tenant, name string) (messages.Workspace, uint64, error) {
	w, revision, err := u.WorkspacesInMemory.Workspace(ctx, tenant, name)
	w.Turn, w.Seq = 0, 0
	return w, revision, err
}

// shelf is a world in which runs work in the workspace "w".
type shelf struct {
	*runlog.Controller

	t    *testing.T
	last map[messages.Ref]record.Entry
}

func newShelf(t *testing.T, heads runlog.Workspaces) *shelf {
	t.Helper()
	n := 0
	return &shelf{t: t, last: map[messages.Ref]record.Entry{}, Controller: &runlog.Controller{
		Log: &runlog.Memory{}, Queue: wakes{}, Semaphores: &runlog.SemaphoresInMemory{}, Workspaces: heads, Now: time.Now,
		NewID: func() string { n++; return fmt.Sprint("e", n) },
	}}
}

func (s *shelf) add(run messages.Ref, rs ...record.Record) record.Entry {
	s.t.Helper()
	was := s.last[run]
	e := record.Entry{Head: record.Follow(was.Head, rs...), Records: rs}
	e.Head.ID, e.Head.Time = s.NewID(), s.Now()
	seq, err := s.Log.Append(s.t.Context(), run, was.Seq, e)
	if err != nil {
		s.t.Fatal(err)
	}
	s.last[run] = e.At(seq)
	return s.last[run]
}

// begin has a run take the workspace, as its owner does; the run must have been given the permit.
func (s *shelf) begin(run messages.Ref) (found string) {
	s.t.Helper()
	semaphore := queue.WorkspaceSemaphore(run.Tenant, "w")
	rs := []record.Record{&record.Claimed{Claim: "c"}, &record.Lined{Semaphores: []string{semaphore}}}
	if s.last[run].Seq == 0 {
		rs = append([]record.Record{&record.Started{}}, rs...)
	}
	claim := s.add(run, rs...).Head.ClaimSeq
	waits, err := s.Acquire(s.t.Context(), run, claim, []string{semaphore}, 0)
	if err != nil || waits != "" {
		s.t.Fatalf("%s waits for %q, %v", run, waits, err)
	}
	turn, w, err := s.TakeWorkspace(s.t.Context(), run, claim, "w")
	if err != nil {
		s.t.Fatal(err)
	}
	s.add(run, &record.FilesSaved{Manifest: w.Manifest, Taken: &record.Taken{Workspace: "w", Turn: turn, Run: w.Run}})
	return w.Manifest
}

func (s *shelf) close(run messages.Ref, e record.Entry) {
	s.t.Helper()
	if err := s.Close(s.t.Context(), run, &e, quiet{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shelf) head() messages.Workspace {
	s.t.Helper()
	w, _, err := s.Workspaces.Workspace(s.t.Context(), "t", "w")
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

// lateSettle has a run change the workspace and park, and another one change it and end; then a process settles the park once more, which
// had been stopped since before.
func lateSettle(t *testing.T, heads runlog.Workspaces) (head messages.Workspace) {
	t.Helper()
	s := newShelf(t, heads)
	one, other := messages.Ref{Tenant: "t", Run: "r1"}, messages.Ref{Tenant: "t", Run: "r2"}
	s.begin(one)
	s.add(one, &record.FilesSaved{Step: 1, Manifest: strings.Repeat("a", 64), Files: 1})
	parked := s.add(one, &record.Parked{Reason: "answer"})
	s.close(one, parked)
	if found := s.begin(other); found != strings.Repeat("a", 64) {
		t.Errorf("the next run found %q", found)
	}
	s.add(other, &record.FilesSaved{Step: 1, Manifest: strings.Repeat("b", 64), Files: 2})
	s.close(other, s.add(other, &record.Finished{}))
	s.close(one, parked)
	return s.head()
}

// A process that settles late does not bring back the files of before.
func TestLateSettleOfAWorkspace(t *testing.T) {
	t.Parallel()
	if got := lateSettle(t, &runlog.WorkspacesInMemory{}); got.Run != "r2" || got.Manifest != strings.Repeat("b", 64) || got.Files != 2 {
		t.Errorf("the head is %+v", got)
	}
}

// Without the order of heads it does.
func TestLateSettleOfAWorkspaceFailsWithout(t *testing.T) {
	t.Parallel()
	if got := lateSettle(t, unordered{&runlog.WorkspacesInMemory{}}); got.Run != "r1" {
		t.Errorf("the head is %+v", got)
	}
}

// A workspace is removed while no run has it. Turns continue above those of before, also when the semaphores are lost.
func TestForgetWorkspace(t *testing.T) {
	t.Parallel()
	s := newShelf(t, &runlog.WorkspacesInMemory{})
	one, other := messages.Ref{Tenant: "t", Run: "r1"}, messages.Ref{Tenant: "t", Run: "r2"}
	if _, err := s.ForgetWorkspace(t.Context(), "t", "w"); !errors.Is(err, runlog.ErrNotFound) {
		t.Errorf("one that never was: %v", err)
	}
	s.begin(one)
	s.add(one, &record.FilesSaved{Step: 1, Manifest: strings.Repeat("a", 64), Files: 1})
	if _, err := s.ForgetWorkspace(t.Context(), "t", "w"); !errors.Is(err, runlog.ErrWorkspaceBusy) {
		t.Errorf("while a run has it: %v", err)
	}
	s.close(one, s.add(one, &record.Finished{}))
	was, err := s.ForgetWorkspace(t.Context(), "t", "w")
	if err != nil || was.Run != "r1" || was.Files != 1 {
		t.Errorf("it was %+v, %v", was, err)
	}
	removed := s.head()
	if removed.Manifest != "" || removed.Turn <= was.Turn {
		t.Errorf("the head is %+v after %+v", removed, was)
	}
	s.Semaphores = &runlog.SemaphoresInMemory{}
	if found := s.begin(other); found != "" {
		t.Errorf("the next run found %q", found)
	}
	if turn := s.last[other].Head.Workspace.Turn; turn <= removed.Turn {
		t.Errorf("it has turn %d after %d", turn, removed.Turn)
	}
}

// A run has left a workspace that was removed since, so long ago that its head and its semaphore are gone. What settles the run late brings
// nothing back, and when the run continues it does not take an earlier turn for this one.
func TestSettleAfterAHeadIsGone(t *testing.T) {
	t.Parallel()
	s := newShelf(t, &runlog.WorkspacesInMemory{})
	one, other := messages.Ref{Tenant: "t", Run: "r1"}, messages.Ref{Tenant: "t", Run: "r2"}
	s.begin(one)
	s.add(one, &record.FilesSaved{Step: 1, Manifest: strings.Repeat("a", 64), Files: 1})
	parked := s.add(one, &record.Parked{Reason: "answer"})
	s.close(one, parked)
	if _, err := s.ForgetWorkspace(t.Context(), "t", "w"); err != nil {
		t.Fatal(err)
	}
	s.Workspaces, s.Semaphores = &runlog.WorkspacesInMemory{}, &runlog.SemaphoresInMemory{}
	s.close(one, parked)
	if got := s.head(); got != (messages.Workspace{}) {
		t.Errorf("the head is %+v", got)
	}
	before := s.last[one].Head.Workspace.Turn
	s.Now = func() time.Time { return time.Now().Add(24 * time.Hour) }
	if found := s.begin(one); found != "" || s.last[one].Head.Workspace.Turn <= before {
		t.Errorf("it found %q in turn %d after %d", found, s.last[one].Head.Workspace.Turn, before)
	}
	s.close(one, s.add(one, &record.Finished{}))
	// A head without files goes while a run has the workspace, which then leaves its own there.
	s.begin(other)
	s.Workspaces = &runlog.WorkspacesInMemory{}
	s.add(other, &record.FilesSaved{Step: 1, Manifest: strings.Repeat("b", 64), Files: 2})
	s.close(other, s.add(other, &record.Finished{}))
	if got := s.head(); got.Run != "r2" || got.Manifest != strings.Repeat("b", 64) {
		t.Errorf("the head is %+v", got)
	}
}

// swept are heads that a sweep looks at before each is stored.
type swept struct {
	*runlog.WorkspacesInMemory
	sweep func()
}

func (s swept) PutWorkspace(ctx context.Context, tenant, name string, revision uint64, w messages.Workspace) error {
	s.sweep()
	return s.WorkspacesInMemory.PutWorkspace(ctx, tenant, name, revision, w)
}

// A sweep leaves a removal alone that is under way, so that no run begins with what is removed, and ends one whose process has died.
func TestSweepDuringARemoval(t *testing.T) {
	t.Parallel()
	heads := &swept{&runlog.WorkspacesInMemory{}, func() {}}
	s := newShelf(t, heads)
	one := messages.Ref{Tenant: "t", Run: "r1"}
	semaphore := queue.WorkspaceSemaphore("t", "w")
	s.begin(one)
	s.add(one, &record.FilesSaved{Step: 1, Manifest: strings.Repeat("a", 64), Files: 1})
	s.close(one, s.add(one, &record.Finished{}))
	holders := func() int {
		l, _, err := s.Semaphores.Semaphore(t.Context(), semaphore)
		if err != nil {
			t.Fatal(err)
		}
		return len(l.Permits)
	}
	looked := false
	heads.sweep = func() {
		looked = true
		if err := s.SweepSemaphores(t.Context()); err != nil || holders() != 1 {
			t.Errorf("the sweep left %d permits, %v", holders(), err)
		}
		later := *s.Controller
		later.Now = func() time.Time { return time.Now().Add(2 * time.Minute) }
		if err := later.SweepSemaphores(t.Context()); err != nil || holders() != 0 {
			t.Errorf("a later one left %d permits, %v", holders(), err)
		}
	}
	if _, err := s.ForgetWorkspace(t.Context(), "t", "w"); err != nil || !looked {
		t.Errorf("swept: %t, %v", looked, err)
	}
}
