package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// What says what is wrong with a place.
type What string

// What can be wrong.
const (
	Changed   What = "changed"   // the line is not as it was written
	Missing   What = "missing"   // entries are not there
	Added     What = "added"     // an entry stands where none was, or out of order
	Replaced  What = "replaced"  // an entry, or all before it, is not the one that the next names
	Unsigned  What = "unsigned"  // a head without a valid signature of a key that counts
	Different What = "different" // the chain is not the one that was signed
)

// Finding is a place where a folder is not as it was written.
type Finding struct {
	Tenant string `json:"tenant,omitempty"` // empty: the heads
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	N      uint64 `json:"n,omitempty"` // of the entry, or of the first one
	What   What   `json:"what"`
	Detail string `json:"detail"`
}

// maxFindings bounds the findings of one chain.
const maxFindings = 20

// HeadRef names a head. Kept elsewhere, it proves that the folder was not truncated to an older one.
type HeadRef struct {
	N        uint64    `json:"n"`
	Hash     Hash      `json:"hash"`
	At       time.Time `json:"at"`
	Position uint64    `json:"position"`
	Key      string    `json:"key"`
}

// Summary is what was read.
type Summary struct {
	Tenants  int     `json:"tenants"`
	Entries  uint64  `json:"entries"`
	Findings int     `json:"findings"`
	Pending  uint64  `json:"pending"` // entries that no head covers yet: the auditor is at work, or was killed
	Head     HeadRef `json:"head"`    // the newest
}

// VerifyConfig says what to hold a folder against.
type VerifyConfig struct {
	Dir    string
	Keys   PublicKeys      // whose heads count. Default: any key's, which does not detect a chain that was rewritten with another key
	Anchor map[uint64]Hash // heads that were kept elsewhere
	Tenant string          // only this one; default all
	// How long an entry may wait for its head, by the clock of this machine. An entry that waits longer is a finding: heads were
	// removed, or the auditor did not return. Default: no limit.
	MaxUnsigned time.Duration

	// Entry is called with each entry of the tenants as it was read and fits the chain, up to the newest head. Optional.
	Entry func(tenant string, e *Entry) error
	// Found is called with each finding, at most 20 of a chain.
	Found func(Finding)
}

// Verify reads a folder and reports tampering. It needs no network and writes nothing; it uses a bounded amount of memory per
// tenant. It may be called while an auditor is at work. An error means that the folder could not be read.
func Verify(ctx context.Context, cfg VerifyConfig) (Summary, error) {
	if _, err := os.Stat(cfg.Dir); err != nil {
		return Summary{}, fmt.Errorf("read the audit: %w", err)
	}
	v := &verifier{VerifyConfig: cfg, state: newState()}
	if err := v.heads(ctx); err != nil {
		return v.Summary, err
	}
	names := map[string]bool{}
	for name := range v.state.tails {
		names[chainOf(name)] = true
	}
	found, err := chains(cfg.Dir)
	if err != nil {
		return v.Summary, err
	}
	for _, name := range found {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		tenant := tenantOf(name)
		if cfg.Tenant != "" && cfg.Tenant != tenant {
			continue
		}
		v.Tenants++
		if err := v.tenant(ctx, name, tenant); err != nil {
			return v.Summary, err
		}
	}
	v.unsigned(time.Now())
	return v.Summary, nil
}

type verifier struct {
	VerifyConfig
	Summary

	state            *state
	earliest, latest time.Time // of the pending entries of tenants
}

// pend counts an entry that no head covers.
func (v *verifier) pend(e *Entry) {
	v.Pending++
	if v.earliest.IsZero() || e.At.Before(v.earliest) {
		v.earliest = e.At
	}
	if e.At.After(v.latest) {
		v.latest = e.At
	}
}

// unsigned reports entries that wait for a head too long. A time to come is one too: it would never be too long ago.
func (v *verifier) unsigned(now time.Time) {
	if v.MaxUnsigned <= 0 || v.earliest.IsZero() || now.Sub(v.earliest) <= v.MaxUnsigned && v.latest.Sub(now) <= v.MaxUnsigned {
		return
	}
	w := &walk{v: v, chain: headsChain}
	w.report(Missing, v.Head.N+1, "no head covers %d entries from %s to %s: the heads were cut back, or no auditor has signed since",
		v.Pending, v.earliest.Format(time.RFC3339), v.latest.Format(time.RFC3339))
}

// walk follows a chain.
type walk struct {
	v      *verifier
	chain  string
	tenant string
	n      uint64 // of the last entry
	prev   Hash
	linked bool // prev is known
	found  int
	at     line
	cut    bool // the last line was cut off
}

func (w *walk) report(what What, n uint64, format string, args ...any) {
	w.v.Findings++
	if w.found++; w.found > maxFindings {
		return
	}
	f := Finding{Tenant: w.tenant, N: n, What: what, Detail: fmt.Sprintf(format, args...)}
	if w.at.segment > 0 {
		f.File, f.Line = w.at.file(), w.at.number
	}
	if w.found == maxFindings {
		f.Detail += "; more of this chain is not listed"
	}
	if w.v.Found != nil {
		w.v.Found(f)
	}
}

// entries calls do with what fits the chain.
func (w *walk) entries(ctx context.Context, do func(*Entry) error) error {
	segs, err := segments(w.v.Dir, w.chain)
	if err != nil {
		return err
	}
	for i, seg := range segs {
		for l, err := range lines(w.v.Dir, w.chain, seg) {
			switch {
			case errors.Is(err, fs.ErrNotExist): // removed for its age meanwhile
				continue
			case err != nil:
				return err
			case ctx.Err() != nil:
				return context.Cause(ctx)
			}
			w.at = l
			if i == len(segs)-1 && !l.whole {
				w.cut = true
				break
			}
			e, ok := w.entry(&l)
			if !ok {
				continue
			}
			if err := do(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry holds a line against the one before. It is false when there is no use in looking at it further.
func (w *walk) entry(l *line) (*Entry, bool) {
	e, err := parseLine(l.text)
	if err != nil {
		w.n++
		w.linked = false
		w.report(Changed, w.n, "%v", err)
		return nil, false
	}
	if e.Hash != e.sum(w.chain) {
		why := "the hash is not that of the line"
		if t := strings.Split(e.Subject, "."); w.tenant != "" && len(t) == 4 && t[1] != w.tenant {
			why += ", whose subject is one of the tenant " + t[1]
		}
		w.report(Changed, e.N, "%s", why)
		if e.N > w.n {
			w.n, w.linked = e.N, false
		}
		return nil, false
	}
	begins := w.n == 0
	switch {
	case !begins && e.N <= w.n:
		w.report(Added, e.N, "it stands after entry %d", w.n)
		return nil, false
	case !begins && e.N > w.n+1:
		w.report(Missing, w.n+1, "entries %d to %d", w.n+1, e.N-1)
	case (w.linked || begins && e.N == 1) && e.Prev != w.prev:
		w.report(Replaced, e.N, "it does not follow what stands before it")
	}
	w.n, w.prev, w.linked = e.N, e.Hash, true
	return &e, true
}

// heads reads the heads.
func (v *verifier) heads(ctx context.Context) error {
	w := &walk{v: v, chain: headsChain}
	first, pending := uint64(0), 0
	anchors := maps.Clone(v.Anchor)
	err := w.entries(ctx, func(e *Entry) error {
		if first == 0 {
			first = e.N
		}
		if hash, ok := anchors[e.N]; ok {
			if hash != e.Hash {
				w.report(Different, e.N, "the head that was kept elsewhere has another hash")
			}
			delete(anchors, e.N)
		}
		switch {
		case !e.isSigned():
			w.report(Unsigned, e.N, "the signature is not valid")
			return nil
		case !v.Keys.counts(e.Key):
			w.report(Unsigned, e.N, "it is signed with %s, which is not among the keys that count", e.Key)
			return nil
		}
		pending++
		whole, err := v.state.take(e)
		if err != nil {
			w.report(Changed, e.N, "%v", err)
			return nil
		}
		if whole {
			pending = 0
			v.Head = HeadRef{e.N, e.Hash, e.At, e.Position, e.Key}
		}
		return nil
	})
	if err != nil {
		return err
	}
	v.Pending += uint64(pending)
	w.at = line{}
	kept := max(1, v.state.body.From)
	switch {
	case w.n == 0 && !w.cut:
		w.report(Missing, 1, "there are no heads")
	case first > kept:
		w.report(Missing, kept, "entries %d to %d", kept, first-1)
	case first > 1 && !v.state.whole:
		w.report(Missing, kept, "the first segment does not begin with a head of all chains")
	}
	for _, n := range slices.Sorted(maps.Keys(anchors)) {
		if n >= kept {
			w.report(Missing, n, "the head that was kept elsewhere is missing: the folder was truncated")
		}
	}
	return nil
}

// tenant reads the chain of a tenant.
func (v *verifier) tenant(ctx context.Context, name, tenant string) error {
	tail := v.state.tails[tenant]
	w := &walk{v: v, chain: name, tenant: tenant}
	first := uint64(0)
	err := w.entries(ctx, func(e *Entry) error {
		if first == 0 {
			if first = e.N; first > tail.first() {
				w.report(Missing, tail.first(), "entries %d to %d", tail.first(), first-1)
			}
		}
		if e.N > tail.N && v.isPending(e) { // not signed yet: any process with write access may have written it
			v.pend(e)
			return nil
		}
		v.Entries++
		switch {
		case e.N == tail.N && e.Hash != tail.Hash:
			after, before, err := v.signedUpTo(ctx, name, tenant)
			if err != nil {
				return err
			}
			w.report(Different, after+1, "up to entry %d all is as it was signed, and something from there to entry %d is not", after, before)
		case e.N > tail.N:
			w.report(Added, e.N, "it is older than the newest head, which does not cover it")
		}
		if v.Entry == nil {
			return nil
		}
		return v.Entry(tenant, e)
	})
	if err != nil {
		return err
	}
	if end := max(w.n, tail.first()-1); end < tail.N {
		w.report(Missing, end+1, "entries %d to %d, the end of the chain, which was signed", end+1, tail.N)
	}
	return nil
}

// isPending reports whether an entry that no head covers may be one that was written just now.
func (v *verifier) isPending(e *Entry) bool {
	switch e.Kind {
	case KindEvent, KindForeign:
		return e.Position > v.state.last.Position
	case KindCompared, KindFinding:
		return e.Position == 0 || e.Position > v.state.body.Compared
	default:
		return false
	}
}

// signedUpTo finds the last head that a chain agrees with, and the first that it does not: their entries of the chain.
func (v *verifier) signedUpTo(ctx context.Context, name, tenant string) (after, before uint64, err error) {
	var headsErr error
	heads := iter.Seq[Tail](func(yield func(Tail) bool) {
		st := newState()
		quiet := &verifier{VerifyConfig: VerifyConfig{Dir: v.Dir}}
		w := &walk{v: quiet, chain: headsChain}
		headsErr = w.entries(ctx, func(e *Entry) error {
			if !e.isSigned() || !v.Keys.counts(e.Key) {
				return nil
			}
			if whole, err := st.take(e); err == nil && whole && !yield(st.tails[tenant]) {
				return errEnough
			}
			return nil
		})
	})
	next, stop := iter.Pull(heads)
	defer stop()
	quiet := &verifier{VerifyConfig: VerifyConfig{Dir: v.Dir}}
	w := &walk{v: quiet, chain: name}
	tail, ok := next()
	walked := w.entries(ctx, func(e *Entry) error {
		for ok && tail.N < e.N {
			tail, ok = next()
		}
		if !ok {
			return errEnough
		}
		if tail.N != e.N {
			return nil
		}
		if tail.Hash != e.Hash {
			before = e.N
			return errEnough
		}
		after = e.N
		return nil
	})
	stop()
	if walked != nil && !errors.Is(walked, errEnough) {
		return 0, 0, walked
	}
	if headsErr != nil && !errors.Is(headsErr, errEnough) {
		return 0, 0, headsErr
	}
	return after, before, nil
}

// errEnough ends a walk.
var errEnough = errors.New("enough")
