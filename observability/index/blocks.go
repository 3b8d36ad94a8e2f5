package index

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/database"
)

// Runs whose texts are in no block are searched one by one; once a tenant has enough of them, the oldest become a block. A run
// whose text changes belongs to none again. What its block still says of it costs a look at the run, and is never an answer.
const (
	blockSlack = 2048   // runs that are left, as they may still change
	maxLoose   = 20_000 // runs in no block beyond which all are searched one by one: blocks are being made
)

// changedTexts counts, by tenant, the runs that are in no block, as far as this process has applied them. All is set when it does not
// know of those before it.
type changedTexts struct {
	all bool
	by  map[string]int
}

// maxCounted bounds the tenants that are counted.
const maxCounted = 10_000

func (c *changedTexts) add(by map[string]int) {
	for tenant, n := range by {
		c.by[tenant] += n
	}
	if len(c.by) > maxCounted {
		clear(c.by)
		c.all = true
	}
}

// next is a tenant that may have enough for a block.
func (c *changedTexts) next() (tenant string, ok bool) {
	for tenant, n := range c.by {
		if n >= blockSlack {
			return tenant, true
		}
	}
	return "", false
}

// gatherTexts makes at most one block, if a tenant has enough runs for it.
func (x *Index) gatherTexts(ctx context.Context, on database.Beginner, h head, c *changedTexts) error {
	if c.all {
		c.all = false
		err := x.db.read(ctx, func(ctx context.Context, t *tx) error {
			return t.Each(ctx, func(scan func(...any) error) error {
				var tenant string
				err := scan(&tenant)
				c.by[tenant] = blockSlack
				return err
			}, "SELECT tenant FROM longshore_loose GROUP BY tenant HAVING count(*) >= ? LIMIT ?", blockRuns+blockSlack, maxCounted)
		})
		if err != nil {
			return err
		}
	}
	tenant, ok := c.next()
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	made := false
	err := x.db.transaction(ctx, on, func(t *tx) error {
		is, err := t.head(ctx)
		if err == nil && is != h {
			err = errMoved
		}
		if err != nil {
			return err
		}
		made, err = t.makeBlock(ctx, tenant)
		return err
	})
	if !made {
		delete(c.by, tenant)
	}
	return err
}

// makeBlock makes a block of the oldest runs of a tenant that are in none. It reports false if there are too few.
func (t *tx) makeBlock(ctx context.Context, tenant string) (bool, error) {
	var n int
	err := t.One(ctx, []any{&n}, "SELECT count(*) FROM (SELECT 1 FROM longshore_loose WHERE tenant = ? LIMIT ?) AS loose", tenant, blockRuns+blockSlack)
	if err != nil || n < blockRuns+blockSlack {
		return false, err
	}
	var last int64
	err = t.One(ctx, []any{&last}, "SELECT first FROM longshore_loose WHERE tenant = ? ORDER BY first LIMIT 1 OFFSET ?", tenant, blockRuns-1)
	if err != nil {
		return false, err
	}
	var (
		b      block
		firsts []int64
	)
	err = t.Each(ctx, func(scan func(...any) error) error {
		var (
			first int64
			words string
		)
		if err := scan(&first, &words); err != nil {
			return err
		}
		if len(firsts) < blockRuns { // as there are: a run has a first event of its own
			b.add(len(firsts), words)
			firsts = append(firsts, first)
		}
		return nil
	}, "SELECT l.first, r.words FROM longshore_loose l JOIN longshore_runs r ON r.tenant = l.tenant AND r.first = l.first "+
		"WHERE l.tenant = ? AND l.first <= ? ORDER BY l.first", tenant, last)
	if err != nil {
		return false, err
	}
	if _, err := t.Exec(ctx, "DELETE FROM longshore_loose WHERE tenant = ? AND first <= ?", tenant, last); err != nil {
		return false, err
	}
	if len(firsts) == 0 { // they were removed
		return true, nil
	}
	var number int64
	if err := t.One(ctx, []any{&number}, "SELECT COALESCE(max(block), 0) + 1 FROM longshore_blocks WHERE tenant = ?", tenant); err != nil {
		return false, err
	}
	err = t.upsert(ctx, "longshore_blocks", "tenant, block, made_at, oldest, newest, firsts", 2,
		[][]any{{tenant, number, time.Now().UnixMicro(), firsts[0], firsts[len(firsts)-1], packed(firsts)}})
	if err != nil {
		return false, err
	}
	var rows [][]any
	for i := range buckets {
		if of := b.of(i); of != nil {
			rows = append(rows, []any{tenant, number, i, of})
		}
	}
	return true, t.upsert(ctx, "longshore_bits", "tenant, block, bucket, bits", 3, rows)
}

// packed are numbers in rising order, as a block keeps them.
func packed(firsts []int64) (out []byte) {
	before := int64(0)
	for _, f := range firsts {
		out = binary.AppendUvarint(out, uint64(f-before))
		before = f
	}
	return out
}

func unpacked(data []byte) (firsts []int64, err error) {
	before := int64(0)
	for len(data) > 0 {
		d, n := binary.Uvarint(data)
		if n <= 0 || len(firsts) == blockRuns {
			return nil, fmt.Errorf("read a block of the index: it is damaged after %d runs", len(firsts))
		}
		before += int64(d)
		firsts, data = append(firsts, before), data[n:]
	}
	return firsts, nil
}

// dissolve removes a block. The runs of its range count as in none then, also those that another block has.
func (t *tx) dissolve(ctx context.Context, tenant string, number int64) error {
	_, err := t.Exec(ctx, "INSERT INTO longshore_loose (tenant, first) SELECT r.tenant, r.first FROM longshore_runs r "+
		"JOIN longshore_blocks b ON b.tenant = r.tenant AND b.oldest <= r.first AND b.newest >= r.first WHERE b.tenant = ? AND b.block = ? "+
		"ON CONFLICT (tenant, first) DO NOTHING", tenant, number)
	if err != nil {
		return err
	}
	for _, table := range []string{"longshore_bits", "longshore_blocks"} {
		if _, err := t.Exec(ctx, "DELETE FROM "+table+" WHERE tenant = ? AND block = ?", tenant, number); err != nil {
			return err
		}
	}
	return nil
}

// unsearch removes the blocks that have runs whose rows are removed next.
func (t *tx) unsearch(ctx context.Context, runs []messages.Ref) error {
	for _, ref := range runs {
		var in []int64
		err := t.Each(ctx, func(scan func(...any) error) error {
			var (
				number, first int64
				data          []byte
			)
			if err := scan(&number, &data, &first); err != nil {
				return err
			}
			firsts, err := unpacked(data)
			if _, found := slices.BinarySearch(firsts, first); found || err != nil {
				in = append(in, number)
			}
			return nil
		}, "SELECT b.block, b.firsts, r.first FROM longshore_runs r JOIN longshore_blocks b ON b.tenant = r.tenant AND b.oldest <= r.first AND b.newest >= r.first "+
			"WHERE r.tenant = ? AND r.id = ?", ref.Tenant, ref.Run)
		if err != nil {
			return err
		}
		for _, number := range in {
			if err := t.dissolve(ctx, ref.Tenant, number); err != nil {
				return err
			}
		}
	}
	return nil
}

// dissolveOld removes a block that was made before a time, and reports whether there was one: most of its runs are gone.
func (t *tx) dissolveOld(ctx context.Context, before int64) (bool, error) {
	var (
		tenant string
		number int64
		found  bool
	)
	err := t.Each(ctx, func(scan func(...any) error) error {
		found = true
		return scan(&tenant, &number)
	}, "SELECT tenant, block FROM longshore_blocks WHERE made_at < ? ORDER BY made_at LIMIT 1", before)
	if err != nil || !found {
		return false, err
	}
	return true, t.dissolve(ctx, tenant, number)
}
