package audit

import (
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// A head of more chains than one entry names is several entries, which count together.
func TestManyTenants(t *testing.T) {
	key, dir, now := newKey(t), t.TempDir(), newClock()
	cfg := StoreConfig{Dir: dir, Key: key, Now: now.Now, disk: quick(dir)}
	const tenants = maxChains + 1
	s := openStore(t, cfg)
	for i := range uint64(tenants) {
		run := messages.Ref{Tenant: fmt.Sprintf("t%d", i), Run: "r"}
		if err := s.Message(Message{Seq: i + 1, At: now.now, Subject: run.EventSubject("x"), Body: []byte(`{}`), Run: run}, run.Tenant); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := len(headsIn(t, dir)); n != 2 {
		t.Errorf("%d entries of heads", n)
	}
	// The next day has a segment of its own, which begins with all of them.
	now.now = now.now.Add(24 * time.Hour)
	run := messages.Ref{Tenant: "t0", Run: "r"}
	if err := s.Message(Message{Seq: tenants + 1, At: now.now, Subject: run.EventSubject("x"), Body: []byte(`{}`), Run: run}, run.Tenant); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if s = openStore(t, cfg); s.Position().Sum() != tenants+1 || len(s.tenants) != tenants {
		t.Errorf("position %d, %d tenants", s.Position().Sum(), len(s.tenants))
	}
	found, _, sum := verified(t, VerifyConfig{Dir: dir, Keys: PublicKeys{key.Public()}})
	if found != nil || sum.Tenants != tenants || sum.Pending != 0 {
		t.Errorf("%+v %+v", found, sum)
	}
}
