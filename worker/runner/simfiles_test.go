package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/sandbox/snapshot"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/runner"
)

// fileSeeds begin the seeds whose tool "idem" adds a line to a file, which the task may bring. Two machines have folders; their store fails at times, and at any time loses
// what nothing refers to and no live process has just stored or found.
const fileSeeds = 1 << 22

// simFiles are the files of a simulation.
type simFiles struct {
	snapshot.Memory

	machines []*snapshot.Folders
	shared   string     // a folder for all claims, of the ablation
	rnd      *rand.Rand // with mu of the world, as all below
	fails    int        // how often the store still does

	contents map[string][]*process // who has stored or found a content since it was removed last
	refs     map[string]bool       // manifests that the log's run refers to

	task    messages.Task      // has the files that the seed's task brings
	first   *manifest.Manifest // of them; nil: there are none
	brought map[string]string  // their contents, by path
}

func newSimFiles(t *testing.T, seed uint64, calm bool) *simFiles {
	t.Helper()
	f := &simFiles{shared: t.TempDir(), rnd: rand.New(rand.NewPCG(seed, 6)), contents: map[string][]*process{}, refs: map[string]bool{}}
	if !calm {
		f.fails = 3
	}
	for range 2 {
		m, err := snapshot.NewFolders(snapshot.Config{Dir: t.TempDir(), Store: f, Keep: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		f.machines = append(f.machines, m)
	}
	return f
}

// processOf is the process whose context it is.
type processOf struct{}

// reach is a request to the store.
func (f *simFiles) reach(ctx context.Context, label string) (*process, error) {
	p, ok := ctx.Value(processOf{}).(*process)
	if !ok {
		return nil, errors.New("a request of no process")
	}
	if err := p.op(label); err != nil {
		return nil, err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if f.fails > 0 && f.rnd.IntN(12) == 0 {
		f.fails--
		return nil, errors.New("the store does not answer")
	}
	return p, nil
}

// Has implements snapshot.Store.
func (f *simFiles) Has(ctx context.Context, tenant, hash string) (bool, error) {
	p, err := f.reach(ctx, "has "+hash)
	if err != nil {
		return false, err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	_, ok := f.contents[hash]
	if ok {
		f.contents[hash] = append(f.contents[hash], p)
	}
	return ok, nil
}

// Stat implements firstfiles.Store.
func (f *simFiles) Stat(ctx context.Context, tenant, hash string) (int64, bool, error) {
	if ok, err := f.Has(ctx, tenant, hash); err != nil || !ok {
		return 0, false, err
	}
	return f.Memory.Stat(ctx, tenant, hash)
}

// Put implements snapshot.Store.
func (f *simFiles) Put(ctx context.Context, tenant, hash string, size int64, r io.Reader) error {
	p, err := f.reach(ctx, "put "+hash)
	if err != nil {
		return err
	}
	if err := f.Memory.Put(ctx, tenant, hash, size, r); err != nil {
		return err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	f.contents[hash] = append(f.contents[hash], p)
	return nil
}

// Get implements snapshot.Store.
func (f *simFiles) Get(ctx context.Context, tenant, hash string, size int64, w io.Writer) error {
	p, err := f.reach(ctx, "get "+hash)
	if err != nil {
		return err
	}
	p.w.mu.Lock()
	_, ok := f.contents[hash]
	p.w.mu.Unlock()
	if !ok {
		return manifest.ErrMissing
	}
	return f.Memory.Get(ctx, tenant, hash, size, w)
}

// Refer implements snapshot.Store.
func (f *simFiles) Refer(ctx context.Context, _ messages.Ref, hash string) error {
	p, err := f.reach(ctx, "refer "+hash)
	if err != nil {
		return err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.w.rules != noReference {
		f.refs[hash] = true
	}
	return nil
}

// collect removes what nothing refers to, and no live process relies on. The caller holds mu. Keeps are manifests of heads.
func (f *simFiles) collect(keeps ...string) {
	live := map[string]bool{}
	for _, hash := range keeps {
		live[hash] = true
	}
	for hash := range f.refs {
		live[hash] = true
	}
	for hash := range f.contents {
		if m := f.manifest(hash); live[hash] && m != nil {
			for i := range m.Files {
				live[m.Files[i].Hash] = true
			}
		}
	}
	for hash, by := range f.contents {
		relied := false
		for _, p := range by {
			relied = relied || !p.dead && !p.done
		}
		if !live[hash] && !relied {
			delete(f.contents, hash)
		}
	}
}

// manifest is nil for another content.
func (f *simFiles) manifest(hash string) *manifest.Manifest {
	var data bytes.Buffer
	if f.Memory.Get(context.Background(), simRun.Tenant, hash, manifest.MaxEncoded, &data) != nil {
		return nil
	}
	m, err := manifest.Decode(data.Bytes())
	if err != nil {
		return nil
	}
	return m
}

// book is the file in a manifest; a content that is lost is told.
func (f *simFiles) book(hash string) string {
	if hash == "" {
		return ""
	}
	m := f.manifest(hash)
	if _, ok := f.contents[hash]; !ok || m == nil {
		return "the manifest is lost"
	}
	file, ok := m.Find("book")
	if !ok {
		return ""
	}
	return f.content(&file)
}

// content is that of a file; one that is lost is told.
func (f *simFiles) content(file *manifest.File) string {
	if _, ok := f.contents[file.Hash]; !ok {
		return "the content is lost"
	}
	var data bytes.Buffer
	if err := f.Memory.Get(context.Background(), simRun.Tenant, file.Hash, file.Size, &data); err != nil {
		return err.Error()
	}
	return data.String()
}

// addLine is what a tool does to the file. Its process may die after it has read, and after it has written.
func addLine(p *process, ws *sandbox.Workspace, line string) error {
	before, err := ws.Read("book")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read: %w", err)
	}
	if err := p.op("write"); err != nil {
		return err
	}
	if err := ws.Write("book", append(before, line+"\n"...)); err != nil {
		return err
	}
	return p.op("written")
}

// write is the change of the tool "idem".
func (f *simFiles) write(p *process, c *tools.Call) error {
	if f == nil {
		return nil
	}
	return addLine(p, c.Workspace, c.ID)
}

// work gives a runner its files.
func (f *simFiles) work(p *process, cfg *runner.Config) {
	switch {
	case f == nil:
	case p.w.rules == oneFolder:
		cfg.Workspace = func(messages.Ref) (*sandbox.Workspace, error) { return sandbox.Open(f.shared, sandbox.Limits{}) }
	default:
		cfg.Folders = f.machines[p.id%2]
	}
}

// append is that of the log. In the ablations the record of the files is in an entry of its own, after that of the call or of the first
// claim, or nowhere.
func (f *simFiles) append(ctx context.Context, l simLog, run messages.Ref, last uint64, e record.Entry) (uint64, error) {
	w := l.p.w
	apart := last == 0 && (w.rules == firstApart || w.rules == firstUnsaid) || last != 0 && w.rules == filesApart
	if f == nil || !apart || len(e.Records) < 2 || !e.Head.Has(record.KindFilesSaved) {
		return w.log.Append(ctx, run, last, e)
	}
	rest, saved := without(record.KindFilesSaved, e)
	seq, err := w.log.Append(ctx, run, last, rest)
	if err != nil || w.rules == firstUnsaid {
		return seq, err
	}
	if err := l.p.op("append files"); err != nil {
		return 0, err
	}
	rest.Place(seq)
	after := record.Entry{Head: record.Follow(rest.Head, saved), Records: []record.Record{saved}}
	after.Head.ID, after.Head.Time, after.Head.EventsThrough = e.Head.ID+"f", e.Head.Time, e.Head.EventsThrough
	_, _ = w.log.Append(ctx, run, seq, after) // the owner sees it at its next append
	return seq, nil
}

// without is an entry without its record of a kind.
func without(kind record.Kind, e record.Entry) (rest record.Entry, left record.Record) {
	rest = record.Entry{Head: e.Head}
	rest.Head.Kinds = nil
	for _, r := range e.Records {
		if r.Kind() == kind {
			left = r
			continue
		}
		rest.Records, rest.Head.Kinds = append(rest.Records, r), append(rest.Head.Kinds, r.Kind())
	}
	return rest, left
}

// judge compares the files with those that the task brought and the calls whose results are in the log.
func (f *simFiles) judge(w *world) {
	if f == nil {
		return
	}
	lines, last := "", ""
	for e := range w.log.Read(context.Background(), simRun, 0, runlog.Tail) {
		for _, r := range e.Records {
			switch r := r.(type) {
			case *record.ToolReturned:
				if r.Name == "idem" && !r.Result.IsError {
					lines += r.Result.CallID + "\n"
				}
			case *record.FilesSaved:
				last = r.Manifest
			}
		}
	}
	got, want := "", lines
	if w.rules == oneFolder {
		ws, err := sandbox.Open(f.shared, sandbox.Limits{})
		if err == nil {
			data, _ := ws.Read("book")
			got = string(data)
			_ = ws.Close()
		}
	} else {
		f.collect()
		got, want = f.tree(last), f.wants(lines)
	}
	if got != want {
		w.violate(&w.found.otherFiles, fmt.Sprintf("the files are %s, want %s", got, want))
	}
}

func TestSimulationOfFiles(t *testing.T) {
	n := seeds(t) / 8 // they write to a disk
	sum := simulate(t, fileSeeds, n, allRules, nil)
	t.Logf("%d seeds: %d with other files than the log says, %d other violations", n, sum.otherFiles, sum.total()-sum.otherFiles)
	if sum.total() != 0 {
		t.Errorf("first: %s", sum.first)
	}
}

func TestSimulationOfFilesFailsWithout(t *testing.T) {
	for _, rules := range []ablation{oneFolder, filesApart, noReference} {
		t.Run(string(rules), func(t *testing.T) {
			sum := simulate(t, fileSeeds, 1000, rules, func(v violations) bool { return v.otherFiles > 0 })
			t.Logf("%d with other files", sum.otherFiles)
			if sum.otherFiles == 0 {
				t.Error("nothing was violated: the simulation does not see this rule")
			}
		})
	}
}
