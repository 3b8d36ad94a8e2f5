package files

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	// The longest time between two collections of a dispatcher.
	collectEvery = time.Hour
	// How old a reference must be before its run is looked for: that of a task may come long before its log. And how long the head of a
	// named workspace without files stays: no process reads a head and stores it so much later.
	strayAge = 24 * time.Hour
	// For headers of messages that were not looked at yet.
	collectRoom = 1024
	// How long a collection waits for the next message before it gives up; the next one begins anew.
	collectWait = 10 * time.Second
)

// Collected is what a collection has removed, or would have.
type Collected struct {
	Contents int // that nothing refers to
	Parts    int // storings that were given up
	Refs     int // of runs that do not exist
	Heads    int // of named workspaces without files
	Broken   int // references whose manifest is missing or damaged; they stay
}

// KeepCollecting collects at the start and from then on until ctx ends. Several dispatchers may do so at once.
func (st *Store) KeepCollecting(ctx context.Context) error {
	for ctx.Err() == nil {
		switch c, err := st.Collect(ctx, false); {
		case err != nil && ctx.Err() == nil:
			st.bus.Log().WarnContext(ctx, "look for files that nothing refers to", "err", err)
		case c != Collected{}:
			st.bus.Log().InfoContext(ctx, "removed files that nothing refers to",
				"contents", c.Contents, "unfinished", c.Parts, "references", c.Refs, "workspaces", c.Heads, "broken", c.Broken)
		}
		_ = bus.Pause(ctx, collectEvery) // cut short by the end of ctx
	}
	return nil
}

// Collect removes the contents that nothing refers to and that were neither stored nor found within Margin, what was left of storings
// that were given up, references of runs that do not exist, and heads of named workspaces that have had no files for a day. With look it only counts. Its cost is that of reading the
// headers of what is older than Margin, and the manifests of the tenants that have something to remove.
func (st *Store) Collect(ctx context.Context, look bool) (done Collected, err error) {
	c := &collection{Store: st, look: look, tenants: map[string]*tenantFiles{}}
	began := st.now()
	for m, err := range st.storedBefore(ctx, began.Add(-Margin)) {
		if err != nil {
			return done, fmt.Errorf("read the oldest files: %w", err)
		}
		c.take(&m, began)
	}
	if err := c.strays(ctx); err != nil {
		return c.done, err
	}
	if err := c.emptied(ctx); err != nil {
		return c.done, err
	}
	if err := c.references(ctx); err != nil {
		return c.done, err
	}
	var errs []error
	for name, t := range c.tenants {
		errs = append(errs, c.sweep(ctx, name, t))
	}
	return c.done, errors.Join(errs...)
}

// storedBefore yields what was stored before a time, oldest first. Bodies stay with the server.
func (st *Store) storedBefore(ctx context.Context, before time.Time) iter.Seq2[bus.TailMessage, error] {
	return func(yield func(bus.TailMessage, error) bool) {
		first, ok, err := st.stream().Get(ctx, bus.Lookup{Seq: 1, Next: "files.>"})
		if err != nil {
			yield(bus.TailMessage{}, err)
			return
		}
		if !ok || !first.Time.Before(before) { // the common case of a fleet without files costs one request
			return
		}
		t := &bus.Tail{Bus: st.bus, Stream: bus.StreamFiles, Filter: "files.>", Room: collectRoom}
		t.Start = jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy, HeadersOnly: true}
		defer t.Close()
		for {
			m, err := t.Next(ctx, time.Now().Add(collectWait))
			switch {
			case errors.Is(err, bus.ErrNothing):
				return
			case err != nil:
				yield(m, err)
				return
			case !m.Time.Before(before) || !yield(m, nil) || m.Pending == 0:
				return
			}
		}
	}
}

// collection is one pass.
type collection struct {
	*Store

	look    bool
	tenants map[string]*tenantFiles
	old     []messages.Ref // runs with references older than strayAge
	heads   []oldMessage   // of named workspaces, older than strayAge
	done    Collected
}

// tenantFiles is what a tenant has that is old enough to be removed, and what it refers to.
type tenantFiles struct {
	heads map[string]oldHead
	puts  map[[2]string]bool // storings with old parts, by hash and put
	refs  map[string]bool    // manifests
	named map[string]bool    // contents that schedules name

	uploads map[string]uint64 // old entries of uploads, with their sequences
}

type oldMessage struct {
	subject string
	seq     uint64
}

type oldHead struct {
	seq uint64
	put string
}

func (c *collection) tenant(name string) *tenantFiles {
	t := c.tenants[name]
	if t == nil {
		t = &tenantFiles{map[string]oldHead{}, map[[2]string]bool{}, map[string]bool{}, map[string]bool{}, map[string]uint64{}}
		c.tenants[name] = t
	}
	return t
}

// take notes an old message.
func (c *collection) take(m *bus.TailMessage, began time.Time) {
	s := strings.Split(m.Subject, ".")
	if len(s) < 4 || !strict.ValidToken(s[1]) {
		return
	}
	switch {
	case s[2] == "head" && manifest.ValidHash(s[3]):
		c.tenant(s[1]).heads[s[3]] = oldHead{m.Seq, m.Header.Get(headerPut)}
	case strings.HasPrefix(m.Subject, uploadsPrefix(s[1])):
		c.tenant(s[1]).uploads[m.Subject] = m.Seq
	case s[2] == "part" && len(s) == 6 && manifest.ValidHash(s[3]) && strict.ValidToken(s[4]):
		c.tenant(s[1]).puts[[2]string{s[3], s[4]}] = true
	case s[2] == "ref" && m.Time.Before(began.Add(-strayAge)):
		if run := (messages.Ref{Tenant: s[1], Run: s[3]}); run.Check() == nil && (len(c.old) == 0 || c.old[len(c.old)-1] != run) {
			c.old = append(c.old, run)
		}
	case s[2] == "named" && m.Time.Before(began.Add(-strayAge)):
		c.heads = append(c.heads, oldMessage{m.Subject, m.Seq})
	}
}

// strays removes references of runs that have neither a log nor a task: a worker that was cut off may have made one after its run
// was purged.
func (c *collection) strays(ctx context.Context) error {
	seen := map[messages.Ref]bool{}
	for _, run := range c.old {
		if seen[run] {
			continue
		}
		seen[run] = true
		lives, err := c.lives(ctx, run)
		if err != nil {
			return fmt.Errorf("look for run %s: %w", run, err)
		}
		if lives {
			continue
		}
		c.done.Refs++
		if c.look {
			continue
		}
		if err := c.stream().Clear(ctx, RefsPrefix(run)+"*"); err != nil {
			return fmt.Errorf("remove the references of run %s: %w", run, err)
		}
	}
	return nil
}

// emptied removes heads that have had no files since: those that `workspaces rm` left, and those of runs that saved nothing. A run that has
// such a workspace now finds it as empty as before, and what it leaves there is stored anew; see runlog.Workspaces.
func (c *collection) emptied(ctx context.Context) error {
	for _, h := range c.heads {
		w, seq, err := c.named(ctx, h.subject)
		if err == nil && seq == h.seq && w.Manifest == "" {
			if c.done.Heads++; !c.look {
				err = c.stream().Remove(ctx, seq) // this message and no other
			}
		}
		if err != nil {
			return fmt.Errorf("look at workspace %s: %w", h.subject, err)
		}
	}
	return nil
}

// lives reports whether a run has a log, or a task that waits: in the queue, in a batch, or in the dead letters until it is sent again.
func (c *collection) lives(ctx context.Context, run messages.Ref) (bool, error) {
	for _, at := range []struct{ stream, subject string }{
		{c.bus.Partitions(bus.StreamTasks).NameOf(run), "sched.*." + run.Tenant + "." + run.Run + ".>"},
		{bus.StreamDead, "dead." + run.Tenant + ".*." + run.Run},
		{bus.StreamBatches, messages.BatchRef{Tenant: run.Tenant, ID: "*"}.LineSubject(run.Run)},
		{c.bus.Partitions(bus.StreamTasks).NameOf(run), run.QueuedFilter()},
		{c.bus.Partitions(bus.StreamRuns).NameOf(run), run.LogSubject()}, // last: a task that is begun meanwhile has a log by then
	} {
		_, ok, err := c.bus.Stream(at.stream).Get(ctx, bus.Lookup{Seq: 1, Next: at.subject})
		if err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}

// references reads what tenants refer to, twice: a run that takes over what another one refers to, as a fork does, makes its reference
// while that one is there, so one of the two is seen.
func (c *collection) references(ctx context.Context) error {
	for range 2 {
		for subject, err := range c.stream().Subjects(ctx, "files.*.ref.*.*") {
			if err != nil {
				return fmt.Errorf("look for what runs refer to: %w", err)
			}
			s := strings.Split(subject, ".")
			if t := c.tenants[s[1]]; t != nil && len(s) == 5 && manifest.ValidHash(s[4]) {
				t.refs[s[4]] = true
			}
		}
		if err := c.schedules(ctx); err != nil {
			return err
		}
		if err := c.workspaces(ctx); err != nil { // after the references: what a head names now, the run that left it there had referred to before
			return err
		}
	}
	return nil
}

// workspaces reads what the heads of named workspaces refer to.
func (c *collection) workspaces(ctx context.Context) error {
	var subjects []string
	for subject, err := range c.stream().Subjects(ctx, "files.*.named.*") {
		if err != nil {
			return fmt.Errorf("look for named workspaces: %w", err)
		}
		if c.tenants[strings.Split(subject, ".")[1]] != nil {
			subjects = append(subjects, subject)
		}
	}
	heads := make([]messages.Workspace, len(subjects))
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, subject := range subjects {
		group.Go(func() (err error) { // each from the leader: a head that is old names files that may be removed, and not those that must stay
			if heads[i], _, err = c.named(each, subject); err != nil {
				err = fmt.Errorf("read workspace %s: %w", subject, err)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, w := range heads {
		if w.Manifest != "" {
			c.tenants[strings.Split(subjects[i], ".")[1]].refs[w.Manifest] = true
		}
	}
	return nil
}

// sweep removes what a tenant does not refer to. Nothing is removed when a manifest cannot be read that is stored as it was written.
func (c *collection) sweep(ctx context.Context, tenant string, t *tenantFiles) error {
	live := maps.Clone(t.named)
	for hash := range t.refs {
		if len(t.heads) == 0 && len(t.uploads) == 0 {
			break
		}
		live[hash] = true
		m, err := c.Manifest(ctx, tenant, hash)
		switch {
		case err == nil:
		case errors.Is(err, manifest.ErrMissing), errors.Is(err, manifest.ErrDamaged) && !errors.Is(err, record.ErrClear):
			c.done.Broken++
			c.bus.Log().WarnContext(ctx, "a run refers to files that cannot be read", "tenant", tenant, "err", err)
			continue
		default: // such as a form that a newer program has written, or what is in the clear where that is refused
			return fmt.Errorf("read what tenant %s refers to: %w", tenant, err)
		}
		for i := range m.Files {
			live[m.Files[i].Hash] = true
		}
	}
	for hash, h := range t.heads {
		if live[hash] {
			continue
		}
		c.done.Contents++
		if c.look {
			continue
		}
		// This message and no other: one that took its place since is newer.
		if err := c.stream().Remove(ctx, h.seq); err != nil {
			return fmt.Errorf("remove content %s of tenant %s: %w", hash, tenant, err)
		}
	}
	for subject, seq := range t.uploads {
		if err := c.upload(ctx, tenant, subject, seq, live); err != nil {
			return fmt.Errorf("remove an upload of tenant %s: %w", tenant, err)
		}
	}
	for p := range t.puts {
		if err := c.parts(ctx, tenant, p[0], p[1]); err != nil {
			return fmt.Errorf("remove parts of content %s of tenant %s: %w", p[0], tenant, err)
		}
	}
	return nil
}

// upload removes the entry of an upload, unless it brought something that is stored and that nothing refers to: as long as it was found
// from time to time, that counts.
func (c *collection) upload(ctx context.Context, tenant, subject string, seq uint64, live map[string]bool) error {
	m, ok, err := c.stream().Get(ctx, bus.Lookup{Last: subject})
	if err != nil || !ok || m.Seq != seq || c.look {
		return err
	}
	e, err := c.entry(ctx, tenant, subject, m.Data)
	if errors.Is(err, record.ErrNoKey) {
		return err
	}
	if err == nil { // what cannot be read counts for nothing
		for _, piece := range e.Contents {
			if live[piece.Hash] || check(tenant, piece.Hash) != nil {
				continue
			}
			_, stored, err := c.stream().Get(ctx, bus.Lookup{Last: headSubject(tenant, piece.Hash)})
			if err != nil || stored {
				return err
			}
		}
	}
	return c.stream().Remove(ctx, seq)
}

// parts removes those of a storing that no head names: its content was removed, or stored again, or it was given up. No storing
// uses the parts of another, so none that is under way misses them.
func (c *collection) parts(ctx context.Context, tenant, hash, put string) error {
	m, ok, err := c.stream().Get(ctx, bus.Lookup{Last: headSubject(tenant, hash)})
	if err != nil || ok && m.Header.Get(headerPut) == put {
		return err
	}
	c.done.Parts++
	if c.look {
		return nil
	}
	return c.stream().Clear(ctx, partsPrefix(tenant, hash, put)+"*")
}
