package dispatcher

import (
	"context"
	"fmt"
	"iter"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

// maxEntryCopy bounds an entry that comes in parts, in bytes.
const maxEntryCopy = 128 << 20

// ErrNotBegun means that the run is queued and has no log yet.
var ErrNotBegun = control.ErrNotBegun

// What a dispatcher answers that does not check a run.
var (
	ErrCheckBusy = control.ErrCheckBusy // it is checking other runs
	ErrCheckLong = control.ErrCheckLong // the log is too long for a request
)

// Log yields the entries of a run's log, oldest first, up to the newest when the last page is read. It ends with the first error.
// ErrNotFound: there is no such run. ErrNotBegun: it is queued.
func (of Runs) Log(ctx context.Context, run messages.Ref) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		for l, err := range of.client.logAfter(ctx, run, 0) {
			var e record.Entry
			if err == nil {
				e, err = l.Entry()
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Check plans the decisions of a run again by its log, with the code of the dispatcher that answers, and returns the first one that
// would be another, if there is one. It changes nothing. ErrCheckBusy: ask again. ErrCheckLong: the log is too long for a request. A
// *messages.Problem with the status 501: the dispatcher has no planners, or cannot read the log.
func (of Runs) Check(ctx context.Context, run messages.Ref) (*control.RunCheck, error) {
	return ask[control.RunCheck](ctx, of.client, control.SubjectCheck, control.RunRequest{Tenant: run.Tenant, ID: run.Run})
}

// LogPage returns entries of a run's log with a sequence above after, as they are stored: at most limit of them, and no
// more after some 4 MiB.
func (of Runs) LogPage(ctx context.Context, run messages.Ref, after uint64, limit int) (*control.LogPage, error) {
	const enough = 4 << 20
	all, size := &control.LogPage{Entries: []control.EntryCopy{}, More: true}, 0
	for all.More && len(all.Entries) < limit && size <= enough {
		page, err := of.client.pageAfter(ctx, run, after, limit-len(all.Entries))
		if err != nil {
			return nil, err
		}
		all.More = page.More && len(page.Entries) > 0
		for _, l := range page.Entries {
			if len(all.Entries) == limit || size > enough {
				all.More = true
				break
			}
			all.Entries = append(all.Entries, l)
			size += len(l.Head) + len(l.Records)
			after = l.Seq
		}
	}
	return all, nil
}

// mostOverHTTP is how many entries may be asked for over HTTP at once.
const mostOverHTTP = 1000

// logAfter yields the entries with a sequence above after.
func (c *Client) logAfter(ctx context.Context, run messages.Ref, after uint64) iter.Seq2[control.EntryCopy, error] {
	return func(yield func(control.EntryCopy, error) bool) {
		for more := true; more; {
			page, err := c.pageAfter(ctx, run, after, mostOverHTTP)
			if err != nil {
				yield(control.EntryCopy{}, err)
				return
			}
			for _, l := range page.Entries {
				if after = l.Seq; !yield(l, nil) {
					return
				}
			}
			more = page.More && len(page.Entries) > 0
		}
	}
}

// pageAfter asks for the page after a sequence, and checks that it is in order. Of a dispatcher that may be older, it can have more than limit entries.
func (c *Client) pageAfter(ctx context.Context, run messages.Ref, after uint64, limit int) (*control.LogPage, error) {
	req := control.LogRequest{Tenant: run.Tenant, ID: run.Run, After: after}
	if c.remote != nil || c.within != nil {
		req.Limit = min(limit, mostOverHTTP)
	}
	page, err := c.page(ctx, req)
	if err != nil {
		return nil, err
	}
	for _, l := range page.Entries {
		if l.Seq <= after {
			return nil, fmt.Errorf("read log: entry %d came after %d", l.Seq, after)
		}
		after = l.Seq
	}
	return page, nil
}

// page asks for a page, and for all of an entry that comes in parts.
func (c *Client) page(ctx context.Context, req control.LogRequest) (*control.LogPage, error) {
	var (
		whole []byte
		first *control.LogPart
	)
	for {
		var page control.LogPage
		if err := c.request(ctx, control.SubjectLog, req, &page); err != nil {
			return nil, err
		}
		p := page.Part
		if p == nil {
			return &page, nil
		}
		if first == nil {
			first = p
		}
		if p.Seq != first.Seq || p.Size != first.Size || p.Size > maxEntryCopy ||
			p.Offset != len(whole) || len(p.Data) == 0 || len(whole)+len(p.Data) > p.Size {
			return nil, fmt.Errorf("read log: the parts of entry %d do not fit", first.Seq)
		}
		whole = append(whole, p.Data...)
		if len(whole) == p.Size {
			var l control.EntryCopy
			if err := strict.DecodePeer(whole, &l); err != nil {
				return nil, fmt.Errorf("read log: entry %d: %w", p.Seq, err)
			}
			page.Entries, page.Part = []control.EntryCopy{l}, nil
			return &page, nil
		}
		req.Offset = len(whole)
	}
}
