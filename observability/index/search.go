package index

import (
	"cmp"
	"context"
	"slices"

	"github.com/longshore-run/longshore/messages/control"
)

// candidates are the places of the runs that may have the text of a search, the newest first. Blocks are read as far as they are asked for.
type candidates struct {
	before int64       // the run that the page follows
	read   []int64     // of the blocks that were read, and of the runs in none
	blocks []openBlock // not read yet
}

// openBlock is a block with runs that may have the text.
type openBlock struct {
	number, newest int64
	bits           []byte
}

// next are some that follow, and none in the end.
func (c *candidates) next(ctx context.Context, t *tx, tenant string) ([]int64, error) {
	for len(c.blocks) > 0 && (len(c.read) < chunk || c.read[chunk-1] <= c.blocks[0].newest) {
		b := c.blocks[0]
		c.blocks = c.blocks[1:]
		var data []byte
		if err := t.One(ctx, []any{&data}, "SELECT firsts FROM longshore_blocks WHERE tenant = ? AND block = ?", tenant, b.number); err != nil {
			return nil, err
		}
		all, err := unpacked(data)
		if err != nil {
			return nil, err
		}
		for _, i := range set(b.bits) {
			if i < len(all) && all[i] < c.before {
				c.read = append(c.read, all[i])
			}
		}
		c.order()
	}
	n := min(chunk, len(c.read))
	out := c.read[:n]
	c.read = c.read[n:]
	return out, nil
}

func (c *candidates) order() {
	slices.SortFunc(c.read, func(a, b int64) int { return cmp.Compare(b, a) })
	c.read = slices.Compact(c.read)
}

// candidates are those of a search that began before a place. It reports false if it is better to
// look at all runs that fit otherwise: the text is too short, those runs are few, or many are in no block yet.
func (t *tx) candidates(ctx context.Context, req *control.RunsRequest, by access, before int64) (c *candidates, ok bool, err error) {
	grams := gramsOf(searched(req))
	if grams == nil {
		return nil, false, nil
	}
	others := *req
	others.Search = ""
	if by.byLabel != "" || !onlySearch(&others) {
		n, err := t.count(ctx, req, access{byTime: true, byLabel: by.byLabel, noText: true}, -1, fewRuns+1)
		if err != nil || n <= fewRuns {
			return nil, false, err
		}
	}
	c = &candidates{before: before}
	loose := 0
	err = t.Each(ctx, func(scan func(...any) error) error {
		var first int64
		err := scan(&first)
		if loose++; first < before {
			c.read = append(c.read, first)
		}
		return err
	}, "SELECT first FROM longshore_loose WHERE tenant = ? LIMIT ?", req.Tenant, maxLoose+1)
	if err != nil || loose > maxLoose {
		return nil, false, err
	}
	c.order()
	in, err := t.blocksWith(ctx, req.Tenant, grams)
	if err != nil {
		return nil, false, err
	}
	err = t.Each(ctx, func(scan func(...any) error) error {
		var (
			b      openBlock
			oldest int64
		)
		err := scan(&b.number, &oldest, &b.newest)
		if b.bits = in[b.number]; b.bits != nil && oldest < before {
			c.blocks = append(c.blocks, b)
		}
		return err
	}, "SELECT block, oldest, newest FROM longshore_blocks WHERE tenant = ?", req.Tenant)
	slices.SortFunc(c.blocks, func(a, b openBlock) int { return cmp.Compare(b.newest, a.newest) })
	return c, err == nil, err
}

// onlySearch reports whether a request asks for no more than a text.
func onlySearch(req *control.RunsRequest) bool {
	return req.Since == nil && req.Until == nil && len(req.Statuses) == 0 && len(req.Labels) == 0 &&
		req.Agent == "" && req.Session == "" && req.Parent == "" && req.Code == "" && req.ID == "" && req.Prefix == ""
}

// blocksWith are the blocks with runs that have a piece of text in each bucket, and which runs of a block those are.
func (t *tx) blocksWith(ctx context.Context, tenant string, grams []int) (map[int64][]byte, error) {
	type found struct {
		bits []byte
		n    int
	}
	all := map[int64]*found{}
	args := []any{tenant, tenant}
	for _, g := range grams {
		args = append(args, g)
	}
	err := t.Each(ctx, func(scan func(...any) error) error {
		var (
			number int64
			bits   []byte
		)
		if err := scan(&number, &bits); err != nil {
			return err
		}
		f := all[number]
		if f == nil {
			all[number] = &found{bits, 1}
			return nil
		}
		both(f.bits, bits)
		f.n++
		return nil
	}, "SELECT block, bits FROM longshore_bits WHERE tenant = ? AND block IN (SELECT block FROM longshore_blocks WHERE tenant = ?) AND bucket IN "+tuples(len(grams), 1), args...)
	if err != nil {
		return nil, err
	}
	in := map[int64][]byte{}
	for number, f := range all {
		if f.n == len(grams) && slices.ContainsFunc(f.bits, func(b byte) bool { return b != 0 }) {
			in[number] = f.bits
		}
	}
	return in, nil
}

// among finds the runs that fit among candidates.
func (t *tx) among(ctx context.Context, req *control.RunsRequest, c *candidates, page *control.RunPage) error {
	n := 0
	for len(page.Runs) <= req.Limit || req.Count && n <= control.MaxRunsFound {
		part, err := c.next(ctx, t, req.Tenant)
		if err != nil {
			return err
		}
		if len(part) == 0 {
			break
		}
		w := filter(req, access{})
		args := make([]any, len(part))
		for i, f := range part {
			args[i] = f
		}
		w.add("r.first IN "+tuples(len(part), 1), args...)
		had := len(page.Runs)
		if had <= req.Limit {
			if err := t.list(ctx, req, w, page); err != nil {
				return err
			}
			if len(page.Runs) <= req.Limit {
				n += len(page.Runs) - had
				continue
			}
		}
		if !req.Count {
			continue
		}
		var more int
		if err := t.One(ctx, []any{&more}, "SELECT count(*) FROM longshore_runs r"+w.String(), w.args...); err != nil {
			return err
		}
		n += more
	}
	if req.Count {
		page.Found, page.More = min(n, control.MaxRunsFound), n > control.MaxRunsFound
	}
	end(page, req.Limit)
	return nil
}
