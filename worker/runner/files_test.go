package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/sandbox/snapshot"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

// clerk is a worker whose tool adds a line to the file "book" of its run.
type clerk struct {
	name    string
	held    int           // the call, from 1, that waits after it has written; 0: none
	writing chan struct{} // closed when it waits
	resume  chan struct{} // it continues, and writes once more
	also    string        // a file that it writes in its first call; empty: none
	calls   int
}

func (c *clerk) note(call *tools.Call) error {
	c.calls++
	add := func(line string) error {
		book, err := call.Workspace.Read("book")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return call.Workspace.Write("book", append(book, line+"\n"...))
	}
	if err := add(fmt.Sprintf("%s %d", c.name, c.calls)); err != nil {
		return err
	}
	if c.also != "" && c.calls == 1 {
		if err := call.Workspace.Write(c.also, nil); err != nil {
			return err
		}
	}
	if c.calls != c.held {
		return nil
	}
	close(c.writing)
	<-c.resume
	return add(c.name + " late")
}

// runner works with a log as the clerk does. Its model has the run make two notes, and then end.
func (c *clerk) runner(t *testing.T, log runlog.Log, cfg runner.Config) *runner.Runner {
	t.Helper()
	spec := messages.ToolSpec{Name: "note", Description: "Adds a line.", Effect: messages.EffectIdempotent}
	note, err := tools.Func(spec, func(_ context.Context, call tools.Call, _ struct{}) (tools.Result, error) {
		return tools.Text("noted"), c.note(&call)
	})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Tools, err = tools.NewSet(note); err != nil {
		t.Fatal(err)
	}
	n := 0
	cfg.Worker, cfg.Life = c.name, "life"+c.name
	cfg.Controller = &runlog.Controller{Log: log, Queue: &rq{}, Events: &re{}, Now: time.Now, NewID: func() string {
		n++
		return fmt.Sprint(c.name, n)
	}}
	cfg.Model = rmodel(func(_ context.Context, r model.Request) (*model.Reply, error) {
		turns := 0
		for i := range r.Messages {
			if r.Messages[i].Role == messages.RoleAssistant {
				turns++
			}
		}
		if turns == 2 {
			return say("done"), nil
		}
		call := messages.ToolCall{ID: fmt.Sprint("c", turns), Name: "note", Arguments: "{}"}
		return &model.Reply{Message: messages.Message{Content: []messages.Block{{ToolCall: &call}}}, Stop: messages.StopToolCalls}, nil
	})
	cfg.Agent = func(context.Context, string) (messages.Definition, error) {
		d := messages.Definition{Name: "a", Tools: []string{"note"}}
		d.SetDefaults()
		return d, nil
	}
	return runner.New(cfg)
}

// machine has a folder of its own, and the store that all share.
func machine(t *testing.T, store snapshot.Store) *snapshot.Folders {
	t.Helper()
	return machineIn(t, t.TempDir(), store)
}

func machineIn(t *testing.T, dir string, store snapshot.Store) *snapshot.Folders {
	t.Helper()
	f, err := snapshot.NewFolders(snapshot.Config{Dir: dir, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// forgetful is a log whose entries do not say what the files are.
type forgetful struct{ runlog.Log }

func (l forgetful) Append(ctx context.Context, run messages.Ref, last uint64, e record.Entry) (uint64, error) {
	e.Records = slices.DeleteFunc(slices.Clone(e.Records), func(r record.Record) bool { return r.Kind() == record.KindFilesSaved })
	return l.Log.Append(ctx, run, last, e)
}

// book reads the file as the run's log has it.
func book(t *testing.T, log runlog.Log, store snapshot.Store) string {
	t.Helper()
	var saved *record.FilesSaved
	for e, err := range log.Read(t.Context(), rrun, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Records {
			if s, ok := r.(*record.FilesSaved); ok {
				saved = s
			}
		}
	}
	if saved == nil {
		return ""
	}
	var data, content bytes.Buffer
	if err := store.Get(t.Context(), rrun.Tenant, saved.Manifest, manifest.MaxEncoded, &data); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Decode(data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	f, _ := m.Find("book")
	if err := store.Get(t.Context(), rrun.Tenant, f.Hash, f.Size, &content); err != nil {
		t.Fatal(err)
	}
	return content.String()
}

// superseded lets a worker be superseded in the middle of its second call, after it has written and before its result is in the log; it
// writes again when the run has ended with the other. It returns what the file has in the end.
func superseded(t *testing.T, log runlog.Log, files func(name string) runner.Config, read func() string) string {
	t.Helper()
	stale := &clerk{name: "stale", held: 2, writing: make(chan struct{}), resume: make(chan struct{})}
	first := stale.runner(t, log, files("stale"))
	done := make(chan runner.Outcome)
	go func() {
		out, _ := first.Run(t.Context(), rticket(1))
		done <- out
	}()
	<-stale.writing
	next := &clerk{name: "next"}
	if out, err := next.runner(t, log, files("next")).Run(t.Context(), rticket(2)); out != runner.Done || err != nil {
		t.Fatalf("the next owner: %v, %v", out, err)
	}
	close(stale.resume)
	if out := <-done; out != runner.Lost {
		t.Errorf("the superseded owner: %v", out)
	}
	return read()
}

// A call that was begun by an owner before, and has no result in the log, has not changed a file; nor does what that owner writes later.
func TestFilesAreFenced(t *testing.T) {
	const want = "stale 1\nnext 1\n"
	log, store := &runlog.Memory{}, &snapshot.Memory{}
	got := superseded(t, log, func(string) runner.Config { return runner.Config{Folders: machine(t, store)} }, func() string { return book(t, log, store) })
	if got != want {
		t.Errorf("the file is %q, want %q", got, want)
	}
	// Two owners on one machine are no different.
	log, store = &runlog.Memory{}, &snapshot.Memory{}
	shared := machine(t, store)
	if got := superseded(t, log, func(string) runner.Config { return runner.Config{Folders: shared} }, func() string { return book(t, log, store) }); got != want {
		t.Errorf("on one machine the file is %q, want %q", got, want)
	}
}

// Without its parts the fence does not hold: the test above would fail.
func TestFilesAreFencedFailsWithout(t *testing.T) {
	const want = "stale 1\nnext 1\n"
	t.Run("a folder for each claim", func(t *testing.T) {
		dir := t.TempDir()
		open := func(messages.Ref) (*sandbox.Workspace, error) { return sandbox.Open(dir, sandbox.Limits{}) }
		got := superseded(t, &runlog.Memory{}, func(string) runner.Config { return runner.Config{Workspace: open} }, func() string {
			ws, err := open(rrun)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ws.Close() }()
			data, err := ws.Read("book")
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		})
		if got == want {
			t.Errorf("the file is %q", got)
		}
	})
	t.Run("the record in the entry", func(t *testing.T) {
		store, dir := &snapshot.Memory{}, ""
		got := superseded(t, forgetful{&runlog.Memory{}}, func(string) runner.Config {
			dir = t.TempDir() // that of the owner that ends the run comes last
			return runner.Config{Folders: machineIn(t, dir, store)}
		}, func() string {
			data, err := os.ReadFile(filepath.Join(dir, rrun.Tenant, rrun.Run, "book"))
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		})
		if got == want {
			t.Errorf("the file is %q", got)
		}
	})
}

// broken is a store that does not answer, or lacks a content.
type broken struct {
	snapshot.Memory
	put, get error
}

func (b *broken) Put(ctx context.Context, tenant, hash string, size int64, r io.Reader) error {
	if b.put != nil {
		return b.put
	}
	return b.Memory.Put(ctx, tenant, hash, size, r)
}

func (b *broken) Get(ctx context.Context, tenant, hash string, size int64, w io.Writer) error {
	if b.get != nil {
		return b.get
	}
	return b.Memory.Get(ctx, tenant, hash, size, w)
}

// A run whose files cannot be saved or restored is handed back with the reason, and its log says nothing of the call.
func TestStoreOfFilesIsAway(t *testing.T) {
	away := errors.New("the store does not answer")
	log, store := &runlog.Memory{}, &broken{put: away}
	out, err := (&clerk{name: "a"}).runner(t, log, runner.Config{Folders: machine(t, store)}).Run(t.Context(), rticket(1))
	if out != runner.Return || !errors.Is(err, away) {
		t.Errorf("nothing can be saved: %v, %v", out, err)
	}
	if r := released(t, log); !r.Spent || !strings.Contains(r.Reason, away.Error()) {
		t.Errorf("released: %+v", r)
	}
	last, _, err := log.Last(t.Context(), rrun)
	if err != nil || last.Head.Has(record.KindToolReturned) {
		t.Errorf("the log has a result: %+v, %v", last.Head, err)
	}

	store.put = nil
	stale := &clerk{name: "b", held: 2, writing: make(chan struct{}), resume: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = stale.runner(t, log, runner.Config{Folders: machine(t, store)}).Run(t.Context(), rticket(2))
	}()
	<-stale.writing
	store.get = fmt.Errorf("content: %w", manifest.ErrMissing)
	out, err = (&clerk{name: "c"}).runner(t, log, runner.Config{Folders: machine(t, store)}).Run(t.Context(), rticket(3))
	if out != runner.Return || !errors.Is(err, manifest.ErrMissing) {
		t.Errorf("a content is missing: %v, %v", out, err)
	}
	close(stale.resume)
	<-done
	store.get = nil
	if out, err = (&clerk{name: "d"}).runner(t, log, runner.Config{Folders: machine(t, store)}).Run(t.Context(), rticket(4)); out != runner.Done || err != nil {
		t.Errorf("the store is back: %v, %v", out, err)
	}
	if got := book(t, log, store); got != "b 1\nd 1\n" {
		t.Errorf("the file is %q", got)
	}
}

// A file beyond a limit is told to the model, with its name, and the files stay as they were for the next claim.
func TestFilesBeyondALimit(t *testing.T) {
	log, store := &runlog.Memory{}, &snapshot.Memory{}
	folders, err := snapshot.NewFolders(snapshot.Config{Dir: t.TempDir(), Store: store, Limits: snapshot.Limits{Total: 6}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folders.Close() }()
	if out, err := (&clerk{name: "a"}).runner(t, log, runner.Config{Folders: folders}).Run(t.Context(), rticket(1)); out != runner.Done || err != nil {
		t.Fatalf("%v, %v", out, err)
	}
	var told []string
	for e, err := range log.Read(t.Context(), rrun, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Records {
			if r, ok := r.(*record.ToolReturned); ok {
				m := messages.Message{Content: r.Result.Content}
				told = append(told, fmt.Sprint(r.Result.IsError, " ", m.Text()))
			}
		}
	}
	if len(told) != 2 || told[0] != "false noted" || !strings.HasPrefix(told[1], "true noted\nThe files of the run cannot be kept: book: ") {
		t.Errorf("told %q", told)
	}
	if got := book(t, log, store); got != "a 1\n" {
		t.Errorf("the file is %q", got)
	}
}

// released is the last record of the log.
func released(t *testing.T, log *runlog.Memory) *record.Released {
	t.Helper()
	var last record.Record
	for e, err := range log.Read(t.Context(), rrun, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		last = e.Records[len(e.Records)-1]
	}
	r, ok := last.(*record.Released)
	if !ok {
		t.Fatalf("the log ends with %T", last)
	}
	return r
}
