// Package redisstore keeps what package kv's tools keep in Redis, for all workers of a fleet. A scope is a handful of keys with
// its name in braces, so that a cluster has them in one slot; each call is one script, so that it happens as a whole. All
// of them expire when the scope is no longer written to.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/tools/kv"
)

// callTimeout bounds each call.
const callTimeout = 2 * time.Second

// prefix of all keys.
const prefix = "longshore:kv:"

// Store is a kv.Store in Redis.
type Store struct {
	rdb    redis.UniversalClient
	limits kv.Limits
	sealer Sealer // nil: values are in the clear
}

// Sealer encrypts values with a key of the tenant. Safe for concurrent use.
type Sealer interface {
	// Seal encrypts plain and binds it to where it stands. It may return plain as it is, when nothing is to be encrypted.
	Seal(ctx context.Context, tenant string, plain, at []byte) ([]byte, error)
	// Open undoes Seal; it fails when anything is not as it was. What was never sealed it returns as it is, or refuses.
	Open(ctx context.Context, tenant string, value, at []byte) ([]byte, error)
}

// place is what a sealed value is bound to. Neither part can hold a line break.
func place(s kv.Scope, key string) []byte {
	return []byte("longshore kv 1\n" + s.String() + "\n" + key)
}

var _ kv.Store = (*Store)(nil)

// New returns a Store. The caller closes the client, which should have ContextTimeoutEnabled and no retries of its own.
func New(rdb redis.UniversalClient, l kv.Limits) *Store { return &Store{rdb: rdb, limits: l} }

// NewSealed is New with values that are sealed for their tenant. Keys are in the clear: they are listed in order.
func NewSealed(rdb redis.UniversalClient, l kv.Limits, s Sealer) *Store { return &Store{rdb, l, s} }

// keys of a scope, in the order of the scripts.
func keys(s kv.Scope) []string {
	base := prefix + "{" + s.String() + "}:"
	return []string{base + "values", base + "about", base + "names", base + "expiries", base + "counters", base + "calls", base + "times"}
}

// run runs a script, whose reply is a list of texts that begins with a word.
func (st *Store) run(ctx context.Context, s kv.Scope, script *redis.Script, args ...any) ([]string, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := script.Run(ctx, st.rdb, keys(s), args...).StringSlice()
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	if len(reply) == 0 {
		return nil, errBroken
	}
	return reply, nil
}

var errBroken = errors.New("redis: the reply is not one of the script's")

// Get implements kv.Store.
func (st *Store) Get(ctx context.Context, s kv.Scope, key string) (kv.Item, error) {
	reply, err := st.run(ctx, s, getScript, key)
	if err != nil {
		return kv.Item{}, err
	}
	if reply[0] == "none" {
		return kv.Item{}, kv.ErrNone
	}
	if len(reply) != 4 {
		return kv.Item{}, errBroken
	}
	revision, err1 := strconv.ParseInt(reply[2], 10, 64)
	expires, err2 := strconv.ParseInt(reply[3], 10, 64)
	if err1 != nil || err2 != nil {
		return kv.Item{}, errBroken
	}
	value := reply[1]
	if st.sealer != nil {
		plain, err := st.sealer.Open(ctx, s.Tenant, []byte(value), place(s, key))
		if err != nil {
			return kv.Item{}, fmt.Errorf("read the value of %s: %w", key, err)
		}
		value = string(plain)
	}
	return kv.Item{Value: value, Revision: revision, Expires: time.UnixMilli(expires)}, nil
}

// Set implements kv.Store.
func (st *Store) Set(ctx context.Context, s kv.Scope, w kv.Write) (int64, error) {
	room, err := st.room(ctx, s)
	if err != nil {
		return 0, err
	}
	value := w.Value
	if st.sealer != nil {
		sealed, err := st.sealer.Seal(ctx, s.Tenant, []byte(value), place(s, w.Key))
		if err != nil {
			return 0, fmt.Errorf("seal the value of %s: %w", w.Key, err)
		}
		value = string(sealed)
	}
	reply, err := st.run(ctx, s, setScript, w.Key, expected(w.Expect), w.Call, max(st.limits.TTL, kv.CallsFor).Milliseconds(), kv.CallsFor.Milliseconds(), kv.CallsKept,
		value, w.TTL.Milliseconds(), st.limits.Keys, st.limits.Bytes, room, len(w.Value))
	if err != nil {
		return 0, err
	}
	revision, bytes, err := st.changed(w.Key, reply)
	if err != nil {
		return 0, err
	}
	return revision, st.settle(ctx, s, bytes, w.TTL)
}

// Delete implements kv.Store.
func (st *Store) Delete(ctx context.Context, s kv.Scope, r kv.Removal) (bool, error) {
	reply, err := st.run(ctx, s, deleteScript, r.Key, expected(r.Expect), r.Call, max(st.limits.TTL, kv.CallsFor).Milliseconds(), kv.CallsFor.Milliseconds(), kv.CallsKept)
	if err != nil {
		return false, err
	}
	n, bytes, err := st.changed(r.Key, reply)
	if err != nil {
		return false, err
	}
	return n > 0, st.settle(ctx, s, bytes, 0)
}

func expected(revision *int64) string {
	if revision == nil {
		return ""
	}
	return strconv.FormatInt(*revision, 10)
}

// changed reads the reply of a script that changes something: what it returned, and the bytes of the scope.
func (st *Store) changed(key string, reply []string) (returned int64, bytes string, err error) {
	switch reply[0] {
	case "keys", "bytes", "tenant":
		return 0, "", st.limits.Full(map[string]kv.Quota{"keys": kv.QuotaKeys, "bytes": kv.QuotaBytes, "tenant": kv.QuotaTenant}[reply[0]])
	case "conflict":
		n, err := number(reply, 2)
		if err != nil {
			return 0, "", err
		}
		return 0, "", &kv.ConflictError{Key: key, Revision: n}
	case "ok":
		n, err := number(reply, 3)
		if err != nil {
			return 0, "", err
		}
		return n, reply[2], nil
	default:
		return 0, "", errBroken
	}
}

// number is the second text of a reply of so many.
func number(reply []string, texts int) (int64, error) {
	if len(reply) != texts {
		return 0, errBroken
	}
	n, err := strconv.ParseInt(reply[1], 10, 64)
	if err != nil {
		return 0, errBroken
	}
	return n, nil
}

// List implements kv.Store.
func (st *Store) List(ctx context.Context, s kv.Scope, q kv.Query) (entries []kv.Entry, more bool, err error) {
	from, to := "-", "+"
	if q.Prefix != "" {
		from, to = "["+q.Prefix, "("+q.Prefix+"\xff" // which no UTF-8 text has in it
	}
	if q.After >= q.Prefix && q.After != "" {
		from = "(" + q.After
	}
	reply, err := st.run(ctx, s, listScript, from, to, q.Limit+1)
	if err != nil {
		return nil, false, err
	}
	for reply = reply[1:]; len(reply) > 0; reply = reply[2:] {
		if len(reply) < 2 {
			return nil, false, errBroken
		}
		e := kv.Entry{Key: reply[0]}
		var expires int64
		if _, err := fmt.Sscan(reply[1], &e.Revision, &expires, &e.Bytes); err != nil {
			return nil, false, errBroken
		}
		e.Expires = time.UnixMilli(expires)
		entries = append(entries, e)
	}
	if len(entries) > q.Limit {
		return entries[:q.Limit], true, nil
	}
	return entries, false, nil
}
