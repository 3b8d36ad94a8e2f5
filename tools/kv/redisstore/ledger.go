package redisstore

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/tools/kv"
)

func ledgerKeys(s kv.Scope) []string {
	base := prefix + "{quota." + s.Tenant + "}:"
	return []string{base + "bytes", base + "ends"}
}

// room is how many bytes a tenant may still add.
func (st *Store) room(ctx context.Context, s kv.Scope) (int64, error) {
	if st.limits.TenantBytes == 0 {
		return math.MaxInt32, nil // more than any value
	}
	if err := s.Check(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	text, err := totalScript.Run(ctx, st.rdb, ledgerKeys(s)).Text()
	if err != nil {
		return 0, fmt.Errorf("redis: %w", err)
	}
	total, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, errBroken
	}
	return max(0, st.limits.TenantBytes-total), nil
}

// settle writes what a scope has after a change. The change was made whether this succeeds or not, so a call that is repeated because of
// its error changes nothing.
func (st *Store) settle(ctx context.Context, s kv.Scope, bytes string, ttl time.Duration) error {
	if st.limits.TenantBytes == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := settleScript.Run(ctx, st.rdb, ledgerKeys(s), s.String(), bytes, ttl.Milliseconds(), st.limits.TTL.Milliseconds()).Err(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}
