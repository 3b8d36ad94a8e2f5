package audit

import (
	"os"
	"slices"
	"testing"
	"time"
)

// Any process with write access may have written the entries after the newest head. They may come from an auditor at work, so
// they are no finding, but they are not verified either.
func TestUnsignedIsNotShown(t *testing.T) {
	key := newKey(t)
	base := recorded(t, key)
	cfg := VerifyConfig{Dir: base, Keys: PublicKeys{key.Public()}}
	_, before, sumBefore := verified(t, cfg)
	for name, do := range map[string]func(*attack){
		"an entry that never was": func(a *attack) {
			a.edit(acme, -1, func(l [][]byte) [][]byte {
				e, _ := parseLine(l[len(l)-1])
				e.N, e.Prev, e.Kind, e.Position = e.N+1, e.Hash, KindEvent, 41
				e.Subject, e.Body, e.Raw = "events.acme.r.approval_decided", []byte(`{"data":{"by":"ann"}}`), nil
				e.Hash = e.sum(acme)
				return append(l, e.appendLine(nil))
			})
		},
		"a tenant that never was": func(a *attack) {
			e := Entry{N: 1, At: newClock().Now(), Kind: KindEvent, Position: 41, Subject: "events.new.r.approval_decided", Body: []byte(`{}`)}
			e.Hash = e.sum("tenants/new")
			if err := os.Mkdir(a.dir+"/tenants/new", 0o700); err != nil {
				a.Fatal(err)
			}
			if err := os.WriteFile(a.dir+"/tenants/new/"+segmentName(1), e.Line(), 0o600); err != nil {
				a.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &attack{t, copied(t, base)}
			do(a)
			cfg.Dir = a.dir
			found, entries, sum := verified(t, cfg)
			if found != nil || sum.Pending != 1 || sum.Entries != sumBefore.Entries || !slices.Equal(entries, before) {
				t.Errorf("%+v %+v, %d entries for %d", found, sum, len(entries), len(before))
			}
		})
	}
}

// Heads that are cut back leave entries without one. They pass for those of an auditor at work only while they are young.
func TestHeadsCutBack(t *testing.T) {
	key := newKey(t)
	a := &attack{t, recorded(t, key)}
	for range 2 {
		if err := os.Remove(a.path(headsChain, -1)); err != nil {
			t.Fatal(err)
		}
	}
	cfg := VerifyConfig{Dir: a.dir, Keys: PublicKeys{key.Public()}}
	if found, _, sum := verified(t, cfg); found != nil || sum.Pending == 0 {
		t.Fatalf("without a limit: %+v %+v", found, sum)
	}
	cfg.MaxUnsigned = 10 * time.Minute
	found, _, sum := verified(t, cfg)
	if len(found) != 1 || found[0].What != Missing || found[0].Tenant != "" || found[0].N != sum.Head.N+1 {
		t.Errorf("%+v %+v", found, sum)
	}
	cfg.MaxUnsigned = 100 * 365 * 24 * time.Hour
	if found, _, _ := verified(t, cfg); found != nil {
		t.Errorf("younger than the limit: %+v", found)
	}
	for name, at := range map[string]time.Time{"now": time.Now(), "in a year": time.Now().AddDate(1, 0, 0)} {
		v := &verifier{VerifyConfig: VerifyConfig{MaxUnsigned: time.Minute}, state: newState()}
		v.pend(&Entry{At: at})
		v.unsigned(time.Now())
		if (v.Findings > 0) != (name != "now") {
			t.Errorf("%s: %d findings", name, v.Findings)
		}
	}
}
