// Package kvtest checks that a store keeps the promises of [kv.Store].
package kvtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools/kv"
)

// patience bounds what must happen soon.
const patience = 30 * time.Second

// Run runs the suite. Each test opens an empty store.
func Run(t *testing.T, open func(*testing.T, kv.Limits) kv.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, func(kv.Limits) kv.Store){
		"set, get and delete":           testRoundTrip,
		"scopes are apart":              testScopes,
		"compare and set":               testCompareAndSet,
		"a race has one winner":         testRace,
		"the same call":                 testSameCall,
		"calls that are known again":    testCallsKept,
		"values end":                    testExpiry,
		"quotas":                        testQuotas,
		"quotas count what is replaced": testReplaced,
		"list":                          testList,
		"odd texts":                     testOddTexts,
		"scopes that cannot be":         testBadScopes,
		"the context has ended":         testEnded,
		"what is gone is erased":        testSweep,
		"quota of a tenant":             testTenantQuota,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, func(l kv.Limits) kv.Store { return open(t, l) })
		})
	}
}

func limits() kv.Limits { return kv.Limits{Keys: 100, Bytes: 10_000, TTL: time.Hour} }

func run(name string) kv.Scope {
	return kv.Scope{Kind: messages.KVRun, Tenant: "t", Name: name}
}

func write(key, value string) kv.Write { return kv.Write{Key: key, Value: value, TTL: time.Hour} }

func set(t *testing.T, s kv.Store, in kv.Scope, w kv.Write) int64 {
	t.Helper()
	revision, err := s.Set(t.Context(), in, w)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// value is what is kept, "-" for nothing.
func value(t *testing.T, s kv.Store, in kv.Scope, key string) string {
	t.Helper()
	item, err := s.Get(t.Context(), in, key)
	if errors.Is(err, kv.ErrNone) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return item.Value
}

func names(t *testing.T, s kv.Store, in kv.Scope, q kv.Query) []string {
	t.Helper()
	entries, more, err := s.List(t.Context(), in, q)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Key)
	}
	if more {
		out = append(out, "…")
	}
	return out
}

func testRoundTrip(t *testing.T, open func(kv.Limits) kv.Store) {
	s, in := open(limits()), run("r")
	if got := value(t, s, in, "k"); got != "-" {
		t.Errorf("an empty store has %q", got)
	}
	before := time.Now()
	first := set(t, s, in, write("k", "one"))
	item, err := s.Get(t.Context(), in, "k")
	if err != nil || item.Value != "one" || item.Revision != first || first < 1 {
		t.Errorf("%+v, %v after revision %d", item, err, first)
	}
	if d := item.Expires.Sub(before) - time.Hour; d < -time.Minute || d > time.Minute {
		t.Errorf("it ends at %v, %v from an hour after %v", item.Expires, d, before)
	}
	if second := set(t, s, in, write("other", "two")); second <= first {
		t.Errorf("revision %d after %d", second, first)
	}
	if was, err := s.Delete(t.Context(), in, kv.Removal{Key: "k"}); err != nil || !was {
		t.Errorf("deleted: %v, %v", was, err)
	}
	if got := value(t, s, in, "k"); got != "-" {
		t.Errorf("after delete: %q", got)
	}
	if was, err := s.Delete(t.Context(), in, kv.Removal{Key: "k"}); err != nil || was {
		t.Errorf("deleted twice: %v, %v", was, err)
	}
	if third := set(t, s, in, write("k", "three")); third <= first+1 {
		t.Errorf("revision %d of a key that was deleted at %d", third, first)
	}
}

func testScopes(t *testing.T, open func(kv.Limits) kv.Store) {
	s := open(limits())
	all := []kv.Scope{
		run("a"), run("b"),
		{Kind: messages.KVSession, Tenant: "t", Name: "a"},
		{Kind: messages.KVTenant, Tenant: "t"},
		{Kind: messages.KVRun, Tenant: "u", Name: "a"},
		{Kind: messages.KVTenant, Tenant: "u"},
		{Kind: messages.KVTenant, Tenant: "a"},
	}
	for _, in := range all {
		set(t, s, in, write("k", in.String()))
	}
	for _, in := range all {
		if got := value(t, s, in, "k"); got != in.String() {
			t.Errorf("%s has %q", in, got)
		}
	}
	if _, err := s.Delete(t.Context(), all[0], kv.Removal{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	for i, in := range all {
		if got := len(names(t, s, in, kv.Query{Limit: 10})); got != min(i, 1) {
			t.Errorf("%s lists %d keys", in, got)
		}
	}
}

func conflict(err error) int64 {
	if e, ok := errors.AsType[*kv.ConflictError](err); ok {
		return e.Revision
	}
	return -1
}

func testCompareAndSet(t *testing.T, open func(kv.Limits) kv.Store) {
	s, in := open(limits()), run("r")
	expect := func(value string, revision int64) (int64, error) {
		w := write("k", value)
		w.Expect = &revision
		return s.Set(t.Context(), in, w)
	}
	if _, err := expect("x", 1); conflict(err) != 0 {
		t.Errorf("error %v", err)
	}
	first, err := expect("one", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := expect("two", 0); conflict(err) != first {
		t.Errorf("error %v, want a conflict with %d", err, first)
	}
	second, err := expect("two", first)
	if err != nil || second <= first {
		t.Fatal(second, err)
	}
	if _, err := expect("three", first); conflict(err) != second {
		t.Errorf("error %v, want a conflict with %d", err, second)
	}
	if _, err := s.Delete(t.Context(), in, kv.Removal{Key: "k", Expect: &first}); conflict(err) != second {
		t.Errorf("error %v, want a conflict with %d", err, second)
	}
	if got := value(t, s, in, "k"); got != "two" {
		t.Errorf("it is %q", got)
	}
	if was, err := s.Delete(t.Context(), in, kv.Removal{Key: "k", Expect: &second}); err != nil || !was {
		t.Error(was, err)
	}
	if _, err := s.Delete(t.Context(), in, kv.Removal{Key: "k", Expect: &second}); conflict(err) != 0 {
		t.Errorf("error %v", err)
	}
}

// Of many that add to a counter at the same time none is lost.
func testRace(t *testing.T, open func(kv.Limits) kv.Store) {
	s, in := open(limits()), run("r")
	const writers, rounds = 8, 10
	var wg sync.WaitGroup
	errs := make(chan error, writers)
	for range writers {
		wg.Go(func() { errs <- count(t.Context(), s, in, rounds) })
	}
	wg.Wait()
	for range writers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := value(t, s, in, "n"); len(got) != writers*rounds {
		t.Errorf("%d of %d are counted", len(got), writers*rounds)
	}
}

func count(ctx context.Context, s kv.Store, in kv.Scope, rounds int) error {
	for rounds > 0 {
		item, err := s.Get(ctx, in, "n")
		if err != nil && !errors.Is(err, kv.ErrNone) {
			return err
		}
		w := write("n", item.Value+"x")
		w.Expect = &item.Revision
		_, err = s.Set(ctx, in, w)
		if err == nil {
			rounds--
		} else if conflict(err) < 0 {
			return err
		}
	}
	return nil
}

// A call that is repeated changes nothing and returns the same, whatever happened since.
func testSameCall(t *testing.T, open func(kv.Limits) kv.Store) {
	s, in := open(limits()), run("r")
	w := write("k", "one")
	w.Call, w.Expect = "call-1", new(int64)
	first := set(t, s, in, w)
	if again := set(t, s, in, w); again != first {
		t.Errorf("revision %d, then %d", first, again)
	}
	later := set(t, s, in, write("k", "two"))
	if again := set(t, s, in, w); again != first {
		t.Errorf("revision %d, then %d", first, again)
	}
	if item, err := s.Get(t.Context(), in, "k"); err != nil || item.Value != "two" || item.Revision != later {
		t.Errorf("the repeated call came after a later one: %+v, %v", item, err)
	}
	d := kv.Removal{Key: "k", Call: "call-2"}
	for range 2 {
		if was, err := s.Delete(t.Context(), in, d); err != nil || !was {
			t.Errorf("deleted: %v, %v", was, err)
		}
	}
	set(t, s, in, write("k", "three"))
	if was, err := s.Delete(t.Context(), in, d); err != nil || !was {
		t.Errorf("deleted: %v, %v", was, err)
	}
	if got := value(t, s, in, "k"); got != "three" {
		t.Errorf("the repeated delete deleted another value: %q", got)
	}
	// One that changed nothing may be made again.
	w.Call, w.Key = "call-3", "new"
	w.Expect = &later
	if _, err := s.Set(t.Context(), in, w); conflict(err) != 0 {
		t.Errorf("error %v", err)
	}
	// In another scope it is another call.
	w.Call, w.Expect = "call-1", nil
	set(t, s, run("other"), w)
	if got := value(t, s, run("other"), "new"); got != "one" {
		t.Errorf("another scope has %q", got)
	}
}

func testCallsKept(t *testing.T, open func(kv.Limits) kv.Store) {
	s, in := open(limits()), run("r")
	for i := range kv.CallsKept {
		w := write("k", strconv.Itoa(i))
		w.Call = fmt.Sprintf("call-%d", i)
		set(t, s, in, w)
	}
	w := write("k", "again")
	w.Call = "call-0"
	set(t, s, in, w)
	if got := value(t, s, in, "k"); got != strconv.Itoa(kv.CallsKept-1) {
		t.Errorf("a call among the last %d was made again: %q", kv.CallsKept, got)
	}
}

func testExpiry(t *testing.T, open func(kv.Limits) kv.Store) {
	s, in := open(kv.Limits{Keys: 2, Bytes: 100, TTL: time.Hour}), run("r")
	short := write("short", strings.Repeat("x", 90))
	short.TTL = 50 * time.Millisecond
	set(t, s, in, short)
	revision := set(t, s, in, write("l", "y"))
	for deadline := time.Now().Add(patience); value(t, s, in, "short") != "-"; {
		if time.Now().After(deadline) {
			t.Fatal("it does not end")
		}
	}
	if diff := cmp.Diff([]string{"l"}, names(t, s, in, kv.Query{Limit: 10})); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	// It gave its place and its bytes back, and is as if it had never been.
	w := write("short", strings.Repeat("z", 90))
	w.Expect = new(int64)
	if got := set(t, s, in, w); got <= revision {
		t.Errorf("revision %d after %d", got, revision)
	}
}

func full(err error) string {
	if e, ok := errors.AsType[*kv.QuotaError](err); ok {
		return e.Error()
	}
	return fmt.Sprintf("%v is no QuotaError", err)
}

func testQuotas(t *testing.T, open func(kv.Limits) kv.Store) {
	s, in := open(kv.Limits{Keys: 3, Bytes: 20, TTL: time.Hour}), run("r")
	set(t, s, in, write("a", "123456789"))
	set(t, s, in, write("b", "12345678"))
	_, err := s.Set(t.Context(), in, write("c", "1"))
	if want := "the store is full: keys and values together may have 20 bytes; delete some first"; full(err) != want {
		t.Errorf("%s, want %s", full(err), want)
	}
	set(t, s, in, write("c", ""))
	_, err = s.Set(t.Context(), in, write("d", ""))
	if want := "the store is full: there may be 3 keys; delete some first"; full(err) != want {
		t.Errorf("%s, want %s", full(err), want)
	}
	set(t, s, run("other"), write("d", "1234567890")) // a scope is not full because of another
	if _, err := s.Delete(t.Context(), in, kv.Removal{Key: "b"}); err != nil {
		t.Fatal(err)
	}
	set(t, s, in, write("d", "12345678"))
}

func testReplaced(t *testing.T, open func(kv.Limits) kv.Store) {
	s, in := open(kv.Limits{Keys: 3, Bytes: 20, TTL: time.Hour}), run("r")
	for _, v := range []string{"1234567890123456789", "", "12", "1234567890123456789"} {
		set(t, s, in, write("k", v))
	}
	if _, err := s.Set(t.Context(), in, write("k", "12345678901234567890")); !strings.Contains(full(err), "20 bytes") {
		t.Error(full(err))
	}
	if got := value(t, s, in, "k"); got != "1234567890123456789" {
		t.Errorf("a refused write left %q", got)
	}
}

func testList(t *testing.T, open func(kv.Limits) kv.Store) {
	s, in := open(limits()), run("r")
	for _, key := range []string{"b/2", "a", "b/1", "b", "c", "b/é", "B", "b/10"} {
		set(t, s, in, write(key, key))
	}
	for _, c := range []struct {
		q    kv.Query
		want string
	}{
		{kv.Query{Limit: 10}, "B a b b/1 b/10 b/2 b/é c"},
		{kv.Query{Prefix: "b/", Limit: 10}, "b/1 b/10 b/2 b/é"},
		{kv.Query{Prefix: "b/1", Limit: 1}, "b/1 …"},
		{kv.Query{Prefix: "b/", After: "b/10", Limit: 10}, "b/2 b/é"},
		{kv.Query{Prefix: "b/", After: "a", Limit: 10}, "b/1 b/10 b/2 b/é"},
		{kv.Query{Prefix: "b/", After: "c", Limit: 10}, ""},
		{kv.Query{After: "b/é", Limit: 10}, "c"},
		{kv.Query{Limit: 8}, "B a b b/1 b/10 b/2 b/é c"},
		{kv.Query{Limit: 7}, "B a b b/1 b/10 b/2 b/é …"},
		{kv.Query{Prefix: "(", Limit: 7}, ""},
		{kv.Query{Prefix: "b/é", Limit: 7}, "b/é"},
	} {
		if diff := cmp.Diff(c.want, strings.Join(names(t, s, in, c.q), " ")); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.q, diff)
		}
	}
	entries, _, err := s.List(t.Context(), in, kv.Query{Prefix: "b/é", Limit: 1})
	if err != nil || len(entries) != 1 || entries[0].Bytes != 4 || entries[0].Revision < 1 || time.Until(entries[0].Expires) < time.Minute {
		t.Errorf("%+v, %v", entries, err)
	}
}

func testOddTexts(t *testing.T, open func(kv.Limits) kv.Store) {
	s, in := open(limits()), run("r")
	odd := []string{"+", "-", "[", "(", "%d", "a b", "{x}", "1e3", "nil", "0", "*", `\`, `"`, "文"}
	for _, key := range odd {
		set(t, s, in, write(key, "7 7 7\n\x00"+key))
	}
	for _, key := range odd {
		if got := value(t, s, in, key); got != "7 7 7\n\x00"+key {
			t.Errorf("%q has %q", key, got)
		}
	}
	slices.Sort(odd)
	if diff := cmp.Diff(odd, names(t, s, in, kv.Query{Limit: 100})); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	w := write("call", "x")
	w.Call = "1 2\n3"
	first := set(t, s, in, w)
	if again := set(t, s, in, w); again != first {
		t.Errorf("revision %d, then %d", first, again)
	}
}

func testBadScopes(t *testing.T, open func(kv.Limits) kv.Store) {
	s := open(limits())
	for _, in := range []kv.Scope{
		{},
		run(""), run("a.b"), run("a}b"),
		{Kind: "run", Name: "a"},
		{Kind: "fleet", Tenant: "t", Name: "a"},
		{Kind: "tenant", Tenant: "t", Name: "a"},
		{Kind: "tenant", Tenant: "t.run"},
		{Kind: "session", Tenant: "t"},
	} {
		if _, err := s.Set(t.Context(), in, write("k", "v")); err == nil {
			t.Errorf("%+v was let", in)
		}
		if _, err := s.Get(t.Context(), in, "k"); err == nil || errors.Is(err, kv.ErrNone) {
			t.Errorf("%+v was let: %v", in, err)
		}
	}
}

// A Sweep erases the scopes of runs and sessions that are gone, and no others.
func testSweep(t *testing.T, open func(kv.Limits) kv.Store) {
	s := open(limits())
	eraser, ok := s.(kv.Eraser)
	if !ok {
		t.Fatal("the store erases nothing")
	}
	session := func(name string) kv.Scope { return kv.Scope{Kind: messages.KVSession, Tenant: "t", Name: name} }
	all := []kv.Scope{run("gone"), run("here"), session("gone"), session("here"), {Kind: messages.KVTenant, Tenant: "t"}, {Kind: messages.KVTenant, Tenant: "gone"}}
	for _, in := range all {
		w := write("k", in.String())
		w.Call = "call"
		set(t, s, in, w)
	}
	gone := func(_ context.Context, in kv.Scope) (bool, error) {
		if in.Kind == messages.KVTenant {
			t.Errorf("asked about %s", in)
		}
		return in.Name == "gone", nil
	}
	if n, err := kv.Sweep(t.Context(), eraser, gone); err != nil || n != 2 {
		t.Errorf("erased %d scopes, %v", n, err)
	}
	for i, in := range all {
		want := in.String()
		if i == 0 || i == 2 {
			want = "-"
		}
		if got := value(t, s, in, "k"); got != want {
			t.Errorf("%s has %q", in, got)
		}
	}
	// Nothing of it is left: the call is a new one.
	w := write("k", "again")
	w.Call = "call"
	set(t, s, all[0], w)
	if got := value(t, s, all[0], "k"); got != "again" {
		t.Errorf("it is %q", got)
	}
	broken := errors.New("cannot tell")
	if n, err := kv.Sweep(t.Context(), eraser, func(context.Context, kv.Scope) (bool, error) { return true, broken }); n != 0 || !errors.Is(err, broken) {
		t.Errorf("erased %d scopes, %v", n, err)
	}
}

func testTenantQuota(t *testing.T, open func(kv.Limits) kv.Store) {
	s := open(kv.Limits{Keys: 9, Bytes: 20, TenantBytes: 30, TTL: time.Hour})
	session := kv.Scope{Kind: messages.KVSession, Tenant: "t", Name: "s"}
	first := write("k", "123456789012345678")
	first.Call = "call"
	revision := set(t, s, run("a"), first)
	set(t, s, session, write("k", "1234567890"))
	const want = "the store is full: keys and values of all runs of the tenant together may have 30 bytes; delete some first"
	if _, err := s.Set(t.Context(), run("b"), write("k", "")); full(err) != want {
		t.Errorf("%s, want %s", full(err), want)
	}
	if again := set(t, s, run("a"), first); again != revision {
		t.Errorf("a repeated call of a tenant that is full: revision %d, then %d", revision, again)
	}
	set(t, s, session, write("k", "1234567")) // one that shrinks is let
	set(t, s, run("b"), write("k", "12"))
	set(t, s, kv.Scope{Kind: messages.KVTenant, Tenant: "u"}, write("k", "1234567890")) // a tenant is not full because of another
	if _, err := s.Set(t.Context(), run("b"), write("l", "")); full(err) != want {
		t.Errorf("%s, want %s", full(err), want)
	}
	if was, err := s.Delete(t.Context(), session, kv.Removal{Key: "k"}); err != nil || !was {
		t.Fatal(was, err)
	}
	set(t, s, run("b"), write("l", "1234567"))
	eraser, ok := s.(kv.Eraser)
	if !ok {
		t.Fatal("the store erases nothing")
	}
	if err := eraser.Erase(t.Context(), run("a")); err != nil {
		t.Fatal(err)
	}
	short := write("k", "123456789012345678")
	short.TTL = 50 * time.Millisecond
	set(t, s, run("c"), short)
	for deadline := time.Now().Add(patience); ; { // what has ended makes room
		_, err := s.Set(t.Context(), session, write("k", "1234567890"))
		if err == nil {
			break
		}
		value(t, s, run("c"), "k")
		if full(err) != want || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func testEnded(t *testing.T, open func(kv.Limits) kv.Store) {
	s := open(limits())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Set(ctx, run("r"), write("k", "v")); err == nil {
		t.Error("a call whose context has ended was made")
	}
	if got := value(t, s, run("r"), "k"); got != "-" {
		t.Errorf("it is %q", got)
	}
}
