package quotas_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/runlog"
)

func tenantRef(name string) queue.QuotaRef {
	return queue.QuotaRef{Kind: queue.QuotaTenant, Name: name}
}

// quotaReads counts the requests for messages of the bucket of quotas over connections. The server may answer a request
// before it shows it to others, so each connection is flushed first.
func quotaReads(t *testing.T, nc *nats.Conn, over ...*nats.Conn) func() int {
	t.Helper()
	sub, err := nc.SubscribeSync("$JS.API.STREAM.MSG.GET.KV_QUOTAS")
	if err != nil {
		t.Fatal(err)
	}
	flush := func() {
		for _, nc := range append(over, nc) {
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	flush()
	return func() int {
		flush()
		n, _, err := sub.Pending()
		for range n {
			if _, err := sub.NextMsgWithContext(bustest.Context(t)); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// However many tenants there are, one request tells that nothing has changed, and what has changed is read once.
func TestGrantsCostOneLook(t *testing.T) {
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bus.Config{})
	other, nc2 := bustest.Open(t, s, bus.Config{})
	own, others := quotas.New(b, bustest.Logs(b)), quotas.New(other, bustest.Logs(other))
	count := quotaReads(t, bustest.Connect(t, s), nc, nc2)
	const tenants = 20
	granted := func(want int) {
		t.Helper()
		own.ForgetLook()
		for i := range tenants {
			q, err := own.Granted(bustest.Context(t), tenantRef(fmt.Sprint("t", i)))
			if err != nil || q.Weight != i {
				t.Fatalf("tenant %d was granted %+v, %v", i, q, err)
			}
		}
		if n := count(); n != want {
			t.Errorf("%d requests, want %d", n, want)
		}
	}
	put := func(name string, q queue.Quota) {
		t.Helper()
		if _, err := others.PutQuota(bustest.Context(t), tenantRef(name), q, "root", nil); err != nil {
			t.Fatal(err)
		}
		count()
	}
	for i := 1; i < tenants; i++ {
		put(fmt.Sprint("t", i), queue.Quota{Weight: i})
	}
	granted(1 + tenants) // a look, and each of them
	granted(1)           // a look
	put("t3", queue.Quota{Weight: 3, MaxRunning: 1})
	put("else", queue.Quota{Weight: 1})
	granted(1 + 2 + 1) // a look, the two changes, and the one that was read before
}

// openTwo is two processes of one fleet.
func openTwo(t *testing.T, s *embedded.Servers) (one, two *quotas.Quotas) {
	t.Helper()
	first, _ := bustest.Open(t, s, bus.Config{})
	second, _ := bustest.Open(t, s, bus.Config{})
	return quotas.New(first, bustest.Logs(first)), quotas.New(second, bustest.Logs(second))
}

// The view of all quotas and the answer about one are of the same cache: neither is older than the other.
func TestCapsAndGrantsAgree(t *testing.T) {
	own, others := openTwo(t, bustest.Start(t))
	ctx := bustest.Context(t)
	ann := tenantRef("ann")
	caps := own.NewCaps(0)
	agree := func(want queue.Quota, limit int, wider ...string) {
		t.Helper()
		got, err := caps.Load(ctx)
		if err != nil || !slices.Equal(got, wider) || caps.Cap("tenant.ann") != limit {
			t.Fatalf("wider %v, cap %d, %v; want %v and %d", got, caps.Cap("tenant.ann"), err, wider, limit)
		}
		if q, err := own.Granted(ctx, ann); err != nil || q != want {
			t.Fatalf("granted %+v, %v; the caps have %+v", q, err, want)
		}
	}
	put := func(q queue.Quota) {
		t.Helper()
		if _, err := others.PutQuota(ctx, ann, q, "root", nil); err != nil {
			t.Fatal(err)
		}
	}
	agree(queue.Quota{}, runlog.NoCap)
	put(queue.Quota{MaxRunning: 2})
	agree(queue.Quota{MaxRunning: 2}, 2)
	put(queue.Quota{MaxRunning: 1})
	if _, _, err := own.Quota(ctx, ann); err != nil { // a read in between hides no change from the caps
		t.Fatal(err)
	}
	put(queue.Quota{MaxRunning: 3})
	agree(queue.Quota{MaxRunning: 3}, 3, "tenant.ann")
	if err := others.DeleteQuota(ctx, ann, "root", nil); err != nil {
		t.Fatal(err)
	}
	agree(queue.Quota{}, runlog.NoCap, "tenant.ann")
}

// More changes than are looked at one by one, and a bucket that began anew, lose nothing.
func TestGrantsAfterManyChanges(t *testing.T) {
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bus.Config{})
	own := quotas.New(b, bustest.Logs(b))
	ctx := bustest.Context(t)
	js := bustest.NewJetStream(t, nc)
	caps := own.NewCaps(0)
	grantAll := func(limit int) {
		t.Helper()
		for i := range quotas.MaxGrantChanges + 10 {
			if _, err := js.Publish(ctx, fmt.Sprint("$KV.QUOTAS.tenant.t", i), fmt.Appendf(nil, `{"maxRunning":%d}`, limit)); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(limit, granted int) {
		t.Helper()
		if _, err := caps.Load(ctx); err != nil {
			t.Fatal(err)
		}
		for _, tenant := range []string{"t0", fmt.Sprint("t", quotas.MaxGrantChanges+9)} {
			if q, err := own.Granted(ctx, tenantRef(tenant)); err != nil || q.MaxRunning != granted || caps.Cap("tenant."+tenant) != limit {
				t.Errorf("%s was granted %+v, its cap is %d, %v", tenant, q, caps.Cap("tenant."+tenant), err)
			}
		}
	}
	grantAll(1)
	check(1, 1)
	grantAll(2)
	check(2, 2)
	stream, err := js.Stream(ctx, "KV_QUOTAS")
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	if err := js.DeleteStream(ctx, "KV_QUOTAS"); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(ctx, config); err != nil {
		t.Fatal(err)
	}
	check(runlog.NoCap, 0)
}

// A quota that does not fit is read each time, and what was not granted makes room.
func TestGrantsAreBounded(t *testing.T) {
	own, others := openTwo(t, bustest.Start(t))
	ctx := bustest.Context(t)
	for i := range 3 {
		if _, err := own.Granted(ctx, tenantRef(fmt.Sprint("nothing", i))); err != nil {
			t.Fatal(err)
		}
	}
	own.HoldGrants(quotas.MaxQuotas)
	for limit := range 5 {
		want := queue.Quota{MaxQueued: limit + 1}
		for _, name := range []string{"ann", "ben", "cem", "dee"} {
			if _, err := others.PutQuota(ctx, tenantRef(name), want, "root", nil); err != nil {
				t.Fatal(err)
			}
			own.ForgetLook()
			if q, err := own.Granted(ctx, tenantRef(name)); err != nil || q != want {
				t.Errorf("%s was granted %+v, %v", name, q, err)
			}
		}
	}
	if n := own.HeldGrants(); n != quotas.MaxQuotas {
		t.Errorf("%d quotas are held", n)
	}
}

// Readers of quotas that change all the time end up with the newest.
func TestGrantsUnderConcurrency(t *testing.T) {
	own, others := openTwo(t, bustest.Start(t))
	ctx := bustest.Context(t)
	caps := own.NewCaps(0)
	const tenants, changes = 4, 25
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for i := range tenants {
		of := tenantRef(fmt.Sprint("t", i))
		writers.Go(func() {
			for n := range changes {
				if _, err := others.PutQuota(ctx, of, queue.Quota{MaxRunning: n + 1}, "root", nil); err != nil {
					t.Error(err)
				}
			}
		})
		readers.Go(func() {
			last := 0
			for {
				select {
				case <-done:
					return
				default:
				}
				own.ForgetLook()
				q, err := own.Granted(ctx, of)
				if _, _, err := own.Quota(ctx, of); err != nil {
					t.Error(err)
				}
				if err != nil || q.MaxRunning < last {
					t.Errorf("%s: %d after %d, %v", of, q.MaxRunning, last, err)
					return
				}
				last = q.MaxRunning
				if _, err := caps.Load(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	if _, err := caps.Load(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range tenants {
		of := tenantRef(fmt.Sprint("t", i))
		if q, err := own.Granted(ctx, of); err != nil || q.MaxRunning != changes || caps.Cap("tenant."+of.Name) != changes {
			t.Errorf("%s: granted %d, cap %d, %v", of, q.MaxRunning, caps.Cap("tenant."+of.Name), err)
		}
	}
}

// What a process has changed counts there at once, although a look for changes, which began before, ends after it.
func TestOwnGrantsCountAtOnce(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	own := quotas.New(b, bustest.Logs(b))
	ctx := bustest.Context(t)
	js := bustest.NewJetStream(t, nc)
	ann, other := tenantRef("ann"), tenantRef("other")
	for n := range 10 {
		for range quotas.MaxGrantChanges / 2 { // they make the look long
			if _, err := js.Publish(ctx, "$KV.QUOTAS.tenant.other", []byte(`{"weight":1}`)); err != nil {
				t.Fatal(err)
			}
		}
		own.ForgetLook()
		var look sync.WaitGroup
		look.Go(func() {
			if _, err := own.Granted(ctx, other); err != nil {
				t.Error(err)
			}
		})
		want := queue.Quota{MaxRunning: n + 1}
		if _, err := own.PutQuota(ctx, ann, want, "root", nil); err != nil {
			t.Fatal(err)
		}
		if q, err := own.Granted(ctx, ann); err != nil || q != want {
			t.Errorf("granted %+v, %v after %+v was put", q, err, want)
		}
		look.Wait()
	}
}
