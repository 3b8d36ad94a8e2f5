package files_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/bus/retention"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/runlog"
)

// refer stores the files of a run and refers to them.
func refer(t *testing.T, st *files.Store, run messages.Ref, contents ...[]byte) (hash string) {
	t.Helper()
	m := &manifest.Manifest{}
	for i, data := range contents {
		m.Files = append(m.Files, manifest.File{Path: string(rune('a' + i)), Size: int64(len(data)), Hash: put(t, st, run.Tenant, data)})
	}
	data, hash, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	put(t, st, run.Tenant, data)
	if err := st.Refer(bustest.Context(t), run, hash); err != nil {
		t.Fatal(err)
	}
	return hash
}

func collect(t *testing.T, st *files.Store, want files.Collected) {
	t.Helper()
	got, err := st.Collect(bustest.Context(t), false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCollect(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	st := files.New(b)
	run, other := messages.Ref{Tenant: "acme", Run: "r1"}, messages.Ref{Tenant: "acme", Run: "r2"}
	shared, own, large := text(10), text(20), text(2*files.PartSize)
	hash := refer(t, st, run, shared, large)
	refer(t, st, other, shared, own)
	put(t, st, "else", shared) // of another tenant, which refers to nothing
	if found, err := st.At(2*files.Margin).Collect(bustest.Context(t), true); err != nil || found != (files.Collected{Contents: 1}) {
		t.Errorf("a look finds %+v, %v", found, err)
	}
	collect(t, st, files.Collected{}) // all is new
	collect(t, st.At(2*files.Margin), files.Collected{Contents: 1})
	get(t, st, "acme", large)

	if err := retention.New(b, bustest.Logs(b)).Purge(bustest.Context(t), run); err != nil {
		t.Fatal(err)
	}
	collect(t, st.At(2*files.Margin), files.Collected{Contents: 2, Parts: 1}) // the large one and the manifest
	get(t, st, "acme", shared)
	get(t, st, "acme", own)
	if has(t, st, "acme", hash) || has(t, st, "acme", manifest.HashOf(large)) {
		t.Error("what nothing refers to is still there")
	}
	if refs, err := st.Referred(bustest.Context(t), run); err != nil || len(refs) != 0 {
		t.Errorf("the purged run refers to %v, %v", refs, err)
	}
	if refs, err := st.Referred(bustest.Context(t), other); err != nil || len(refs) != 1 {
		t.Errorf("the other run refers to %v, %v", refs, err)
	}
	if n := bustest.StreamLength(t, nc, bus.StreamFiles); n != 4 { // two contents, a manifest, a reference
		t.Errorf("%d messages are left", n)
	}
}

// A writer that finds a content relies on it: it is not removed before its reference is made, however old it was.
func TestWhatIsFoundStays(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	st := files.New(b)
	for _, size := range []int{10, 2 * files.PartSize} {
		data := text(size)
		hash := put(t, st, "acme", data)
		first, ok, err := b.Stream(bus.StreamFiles).Get(bustest.Context(t), bus.Lookup{Last: files.HeadSubject("acme", hash)})
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if !has(t, st.At(files.Margin/2), "acme", hash) {
			t.Fatal("it is not found")
		}
		// What a collection had seen of it is its mark of before.
		if err := b.Stream(bus.StreamFiles).Remove(bustest.Context(t), first.Seq); err != nil {
			t.Fatal(err)
		}
		get(t, st, "acme", data)
	}
}

// A storing that was given up leaves parts. They are removed, and not those of one that was done.
func TestPartsOfAStoringThatWasGivenUp(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	st := files.New(b)
	run := messages.Ref{Tenant: "acme", Run: "r1"}
	data := text(2*files.PartSize + 5)
	err := st.Put(bustest.Context(t), "acme", manifest.HashOf(data), int64(len(data)), bytes.NewReader(data[:len(data)-1]))
	if !errors.Is(err, manifest.ErrDamaged) {
		t.Fatal(err)
	}
	refer(t, st, run, data)
	before := bustest.StreamLength(t, nc, bus.StreamFiles)
	collect(t, st.At(2*files.Margin), files.Collected{Parts: 1})
	if n := bustest.StreamLength(t, nc, bus.StreamFiles); n != before-2 {
		t.Errorf("%d messages, want two parts less than %d", n, before)
	}
	get(t, st, "acme", data)
}

// A reference without a run is removed, one of a run that has a log, or whose task waits in the queue, in a batch or in the dead letters, is not.
func TestStrayReferences(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	st := files.New(b)
	logged, queued, gone := messages.Ref{Tenant: "acme", Run: "r1"}, messages.Ref{Tenant: "acme", Run: "r2"}, messages.Ref{Tenant: "acme", Run: "r3"}
	dead, listed := messages.Ref{Tenant: "acme", Run: "r4"}, messages.Ref{Tenant: "acme", Run: "r5"}
	for i, run := range []messages.Ref{logged, queued, gone, dead, listed} {
		refer(t, st, run, text(10+i))
	}
	for _, subject := range []string{
		bustest.LogAt(b, logged), bustest.QueueAt(b, queued, queued.TaskSubject(messages.PriorityNormal)), dead.DeadSubject("writer"),
		messages.BatchRef{Tenant: "acme", ID: "b"}.LineSubject(listed.Run),
	} {
		if _, err := bustest.NewJetStream(t, nc).Publish(bustest.Context(t), subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	collect(t, st.At(2*files.Margin), files.Collected{})
	collect(t, st.At(files.StrayAge+files.Margin), files.Collected{Refs: 1, Contents: 2})
	for run, want := range map[messages.Ref]int{logged: 1, queued: 1, gone: 0, dead: 1, listed: 1} {
		if refs, err := st.Referred(bustest.Context(t), run); err != nil || len(refs) != want {
			t.Errorf("%s refers to %v, %v", run, refs, err)
		}
	}
}

// The head of a workspace that was removed stays for a day, in which a late process may still look at it, and that of one with files forever.
func TestHeadsOfEmptyWorkspaces(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	st, ctx := files.New(b), bustest.Context(t)
	hash := refer(t, st, messages.Ref{Tenant: "acme", Run: "r1"}, text(10))
	for name, w := range map[string]messages.Workspace{"kept": {Manifest: hash, Files: 1, Turn: 1}, "removed": {Turn: 2}, "again": {Turn: 3}} {
		if err := st.PutWorkspace(ctx, "acme", name, 0, w); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bustest.NewJetStream(t, nc).Publish(ctx, bustest.LogAt(b, messages.Ref{Tenant: "acme", Run: "r1"}), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	late := st.At(files.StrayAge + files.Margin)
	collect(t, st.At(files.StrayAge-files.Margin), files.Collected{})
	if found, err := late.Collect(ctx, true); err != nil || found != (files.Collected{Heads: 2}) {
		t.Errorf("a look finds %+v, %v", found, err)
	}
	collect(t, late, files.Collected{Heads: 2})
	collect(t, late, files.Collected{})
	var names []string
	for name, err := range st.Named(ctx, "acme") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if diff := cmp.Diff([]string{"kept"}, names); diff != "" {
		t.Error(diff)
	}
	if err := st.PutWorkspace(ctx, "acme", "again", 0, messages.Workspace{Manifest: hash, Turn: 4}); err != nil {
		t.Error(err)
	}
}

// A manifest that is damaged or missing is reported, and what others refer to stays.
func TestCollectBesideADamagedManifest(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	st := files.New(b)
	bad := refer(t, st, messages.Ref{Tenant: "acme", Run: "r1"}, text(10))
	refer(t, st, messages.Ref{Tenant: "acme", Run: "r2"}, text(20))
	store(t, b, files.HeadSubject("acme", bad), []byte("{}"))
	collect(t, st.At(2*files.Margin), files.Collected{Contents: 1, Broken: 1}) // what it named is named by none that can be read
	get(t, st, "acme", text(20))
	if err := st.Get(bustest.Context(t), "acme", bad, 100, io.Discard); !errors.Is(err, manifest.ErrDamaged) {
		t.Errorf("the damaged manifest is read: %v", err)
	}
}

// A manifest of a form that this program does not know keeps all that its tenant has.
func TestCollectBesideANewerManifest(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	st := files.New(b)
	data := put(t, st, "acme", text(10))
	newer := put(t, st, "acme", []byte(`{"version":2,"pages":["`+data+`"]}`))
	if err := st.Refer(bustest.Context(t), messages.Ref{Tenant: "acme", Run: "r1"}, newer); err != nil {
		t.Fatal(err)
	}
	if _, err := st.At(2*files.Margin).Collect(bustest.Context(t), false); err == nil {
		t.Error("a manifest that cannot be read is passed over")
	}
	get(t, st, "acme", text(10))
}

// A fork keeps what the run that it came from had, when that is purged; a run that is being purged has nothing to share.
func TestShare(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	st := files.New(b)
	from, fork := messages.Ref{Tenant: "acme", Run: "r1"}, messages.Ref{Tenant: "acme", Run: "r2"}
	hash := refer(t, st, from, text(10))
	if err := st.Share(bustest.Context(t), from, fork, hash); err != nil {
		t.Fatal(err)
	}
	if err := retention.New(b, bustest.Logs(b)).Purge(bustest.Context(t), from); err != nil {
		t.Fatal(err)
	}
	collect(t, st.At(2*files.Margin), files.Collected{})
	get(t, st, "acme", text(10))
	if err := st.Share(bustest.Context(t), from, messages.Ref{Tenant: "acme", Run: "r3"}, hash); !errors.Is(err, manifest.ErrMissing) {
		t.Errorf("a run that was purged shares its files: %v", err)
	}
}

// A named workspace keeps its files when the run that left them is purged, until another head is put in its place.
func TestWorkspaceKeepsItsFiles(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	st, ctx := files.New(b), bustest.Context(t)
	run, data := messages.Ref{Tenant: "acme", Run: "r1"}, text(10)
	hash := refer(t, st, run, data)
	head := messages.Workspace{Manifest: hash, Files: 1, Bytes: 10, Run: "r1", Turn: 1, Seq: 7}
	if err := st.PutWorkspace(ctx, "acme", "drafts", 0, head); err != nil {
		t.Fatal(err)
	}
	if err := retention.New(b, bustest.Logs(b)).Purge(ctx, run); err != nil {
		t.Fatal(err)
	}
	collect(t, st.At(2*files.Margin), files.Collected{})
	get(t, st, "acme", data)
	got, revision, err := st.Workspace(ctx, "acme", "drafts")
	if err != nil || got != head {
		t.Errorf("the head is %+v, %v", got, err)
	}
	if err := st.PutWorkspace(ctx, "acme", "drafts", revision-1, messages.Workspace{Turn: 2}); !errors.Is(err, runlog.ErrConflict) {
		t.Errorf("a head is put in place of another than was read: %v", err)
	}
	for _, name := range []string{"", "a.b", "*", ">"} {
		if err := st.PutWorkspace(ctx, "acme", name, 0, head); err == nil {
			t.Errorf("a head is stored as %q", name)
		}
	}
	if err := st.PutWorkspace(ctx, "acme", "drafts", revision, messages.Workspace{Turn: 2}); err != nil {
		t.Fatal(err)
	}
	collect(t, st.At(2*files.Margin), files.Collected{Contents: 2})
}

// What the task of a schedule names stays for as long as the schedule exists.
func TestCollectLeavesWhatSchedulesName(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	st, ctx := files.New(b), bustest.Context(t)
	named, listed, other := text(10), text(20), text(30)
	list, hash, err := (&manifest.Manifest{Files: []manifest.File{{Path: "l", Size: 20, Hash: put(t, st, "acme", listed)}}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	put(t, st, "acme", list)
	put(t, st, "acme", other)
	put(t, st, "else", named) // of another tenant
	store, refs := schedules.New(b), []control.ScheduleRef{{Tenant: "acme", Name: "named"}, {Tenant: "acme", Name: "listed"}}
	for i, task := range []messages.Task{{Files: []messages.TaskFile{{Path: "n", Size: 10, Hash: put(t, st, "acme", named)}}}, {Manifest: hash}} {
		task.Input = messages.TextInput("go")
		if _, _, err := store.Put(ctx, control.Schedule{Name: refs[i].Name, Tenant: "acme", Cron: "0 3 * * *", Task: task}, "test", nil); err != nil {
			t.Fatal(err)
		}
	}
	later := st.At(2 * files.Margin)
	collect(t, later, files.Collected{Contents: 2})
	get(t, st, "acme", named)
	get(t, st, "acme", listed)
	for i, left := range []int{1, 2} { // a content; a list and what it names
		if err := store.Delete(ctx, refs[i]); err != nil {
			t.Fatal(err)
		}
		collect(t, later, files.Collected{Contents: left})
	}
}
