package quotas

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/queue"
)

const (
	// How long a look for changes of quotas counts as current, so that a task costs no request.
	grantsTTL = 2 * time.Second
	// How many changes are looked at one by one. After more, every quota is read again.
	maxGrantChanges = 256
)

// grants is what operators granted, as far as this process has read it. It is the only place where a process keeps
// quotas. One look at the bucket every two seconds finds out which of them changed; only those are read again.
type grants struct {
	reading singleflight.Group

	mu      sync.Mutex
	of      map[queue.QuotaRef]*grant // maxQuotas at most
	whole   bool                      // what is not in of was not granted
	seen    uint64                    // the revision of the bucket up to which changes were noticed
	until   time.Time                 // when to look for changes again
	listed  uint64                    // the revision at which the bucket was listed
	changes uint64                    // counts the changes that this process made
	version uint64                    // counts the revisions that were read

	junk  map[queue.QuotaRef]uint64 // the newest revisions that could not be read
	found uint64                    // of those
}

// grant is one quota. Grants guard it.
type grant struct {
	queue.Quota        // the newest that could be read, or what counts in its place
	wasRead     bool   // else it is not known
	revision    uint64 // of the key when it was read
	newest      uint64 // revision of the key that is known to be stored
}

func (g *grant) isCurrent() bool { return g.wasRead && g.revision >= g.newest }

// Granted is what an operator granted, at most two seconds ago; nothing when no quota was set.
func (qs *Quotas) Granted(ctx context.Context, of queue.QuotaRef) (queue.Quota, error) {
	if err := qs.noticeGrants(ctx, false); err != nil {
		return queue.Quota{}, err
	}
	if q, ok := qs.grants.known(of); ok {
		return q, nil
	}
	got, err, _ := qs.grants.reading.Do(of.String(), func() (any, error) {
		q, _, err := qs.Quota(context.WithoutCancel(ctx), of)
		return q, err
	})
	q, _ := got.(queue.Quota)
	return q, err // that of Quota
}

// allGranted reads all quotas that are not current, and returns those that grant or limit something. While the version
// stays the same they do too.
func (qs *Quotas) allGranted(ctx context.Context) (all map[queue.QuotaRef]queue.Quota, version uint64, err error) {
	if err := qs.noticeGrants(ctx, true); err != nil {
		return nil, 0, err
	}
	if err := qs.listGrants(ctx); err != nil {
		return nil, 0, err
	}
	for _, of := range qs.grants.unread() {
		if _, _, err := qs.Quota(ctx, of); err != nil {
			return nil, 0, err
		}
	}
	c := &qs.grants
	c.mu.Lock()
	defer c.mu.Unlock()
	all = make(map[queue.QuotaRef]queue.Quota, len(c.of))
	for of, g := range c.of {
		if g.Quota != (queue.Quota{}) {
			all[of] = g.Quota
		}
	}
	return all, c.version, nil
}

// noticeGrants finds out which quotas changed since the last look, unless that was a moment ago; now: in any case.
func (qs *Quotas) noticeGrants(ctx context.Context, now bool) error {
	c := &qs.grants
	for range 2 { // the first look may be one that another began before this process made a change
		c.mu.Lock()
		isFresh := time.Now().Before(c.until)
		c.mu.Unlock()
		if isFresh && !now {
			return nil
		}
		_, err, _ := c.reading.Do("", func() (any, error) {
			return nil, qs.lookForGrants(context.WithoutCancel(ctx))
		})
		if err != nil || now {
			return err // it says what was done
		}
	}
	return nil
}

func (qs *Quotas) lookForGrants(ctx context.Context) error {
	c := &qs.grants
	began := time.Now()
	c.mu.Lock()
	changes := c.changes
	c.mu.Unlock()
	m, _, err := qs.bus.Stream(bus.StreamQuotas).Get(ctx, bus.Lookup{Last: bus.QuotasBucket.Prefix + ">"})
	if err != nil {
		return fmt.Errorf("look for quotas: %w", err)
	}
	c.mu.Lock()
	from, isEmpty := c.seen, len(c.of) == 0 && !c.whole
	c.mu.Unlock()
	changed := map[queue.QuotaRef]uint64{}
	all, steps := m.Seq < from, 0 // the first: another life of the bucket
	for next := from + 1; next <= m.Seq && !isEmpty && !all; steps++ {
		change, ok, err := qs.bus.Stream(bus.StreamQuotas).Get(ctx, bus.Lookup{Seq: next, Next: bus.QuotasBucket.Prefix + ">"})
		if err != nil {
			return fmt.Errorf("look for quotas: %w", err)
		}
		if !ok {
			break
		}
		if of, ok := quotaOf(change.Subject); ok {
			changed[of] = change.Seq
		}
		next, all = change.Seq+1, steps >= maxGrantChanges
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if all {
		c.forget()
	}
	for of, revision := range changed {
		c.notice(of, revision)
	}
	if c.seen = m.Seq; c.changes == changes { // else it may have been too early to see them
		c.until = began.Add(grantsTTL)
	}
	return nil
}

// listGrants makes the grants whole, if they are not and the bucket has changed since this was tried.
func (qs *Quotas) listGrants(ctx context.Context) error {
	c := &qs.grants
	c.mu.Lock()
	isDone, seen := c.whole || c.listed != 0 && c.listed == c.seen, c.seen
	c.mu.Unlock()
	if isDone {
		return nil
	}
	n, whole := 0, true
	for subject, err := range qs.bus.Stream(bus.StreamQuotas).Subjects(ctx, bus.QuotasBucket.Prefix+"*.*") {
		if err != nil {
			return fmt.Errorf("list quotas: %w", err)
		}
		if of, ok := quotaOf(subject); ok {
			whole = qs.grants.hold(of) != nil && whole
			n++
		}
		if n == maxQuotas {
			whole = false
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// A key that was stored after the listing began may not be in it: the next look finds it, for its revision is higher.
	c.listed, c.whole = seen, whole && c.seen == seen
	return nil
}

// known is what was granted; false: it must be read.
func (c *grants) known(of queue.QuotaRef) (queue.Quota, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.of[of]; g != nil {
		return g.Quota, g.isCurrent()
	}
	return queue.Quota{}, c.whole
}

// unread are the quotas that must be read.
func (c *grants) unread() []queue.QuotaRef {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []queue.QuotaRef
	for of, g := range c.of {
		if !g.isCurrent() {
			all = append(all, of)
		}
	}
	return all
}

// hold is the grant into which a quota is about to be read: what changes meanwhile is noticed there. Nil if there is no
// room for it.
func (c *grants) hold(of queue.QuotaRef) *grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.room(of)
}

func (c *grants) room(of queue.QuotaRef) *grant {
	if g := c.of[of]; g != nil {
		return g
	}
	if len(c.of) >= maxQuotas { // that nothing was granted is easily read again
		maps.DeleteFunc(c.of, func(_ queue.QuotaRef, g *grant) bool { return g.Quota == queue.Quota{} && g.isCurrent() })
	}
	if len(c.of) >= maxQuotas {
		return nil
	}
	if c.of == nil {
		c.of = map[queue.QuotaRef]*grant{}
	}
	g := &grant{}
	c.of[of] = g
	return g
}

// notice notes that a revision of a quota was stored.
func (c *grants) notice(of queue.QuotaRef, revision uint64) {
	g := c.of[of]
	if g == nil && c.whole {
		if g = c.room(of); g == nil {
			c.whole = false
		}
	}
	if g != nil {
		g.newest = max(g.newest, revision)
	}
}

// forget makes every quota be read again. Until then, and for those that cannot be read, what is known counts.
func (c *grants) forget() {
	for of, g := range c.of {
		c.of[of] = &grant{Quota: g.Quota} // a read that is under way says nothing
	}
	c.whole, c.listed = false, 0
}

// expire makes the next Granted look for changes: this process has made one.
func (c *grants) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
	c.changes++
}

// saw keeps what was read at a revision of the key, unless a newer one is known.
func (c *grants) saw(of queue.QuotaRef, g *grant, q queue.Quota, revision uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.junk, of)
	c.put(g, q, revision)
}

func (c *grants) put(g *grant, q queue.Quota, revision uint64) {
	if g == nil || g.wasRead && revision < g.revision {
		return
	}
	if !g.wasRead || revision != g.revision {
		c.version++
	}
	g.Quota, g.wasRead, g.revision = q, true, revision
}

// insteadOf is what counts in the place of a quota that cannot be read. First: this revision was not met before.
func (c *grants) insteadOf(of queue.QuotaRef, g *grant, m bus.Message, revision uint64) (q queue.Quota, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first = c.junk[of] != m.Seq; first {
		if c.junk == nil || len(c.junk) >= maxQuotas {
			c.junk = map[queue.QuotaRef]uint64{}
		}
		c.junk[of] = m.Seq
		c.found++
	}
	q = queue.Quota{Paused: &queue.Pause{Reason: "its quota cannot be read", At: m.Time}}
	if g != nil && g.Quota != (queue.Quota{}) {
		q = g.Quota
	}
	c.put(g, q, revision)
	return q, first
}

// UnreadableQuotas is how many quotas were met that cannot be read, each revision once.
func (qs *Quotas) UnreadableQuotas() uint64 {
	qs.grants.mu.Lock()
	defer qs.grants.mu.Unlock()
	return qs.grants.found
}

// quotaOf is the quota of a subject of the bucket.
func quotaOf(subject string) (queue.QuotaRef, bool) {
	kind, name, _ := strings.Cut(strings.TrimPrefix(subject, bus.QuotasBucket.Prefix), ".")
	of := queue.QuotaRef{Kind: queue.QuotaKind(kind), Name: name}
	return of, of.Check() == nil
}
