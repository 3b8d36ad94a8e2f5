package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// attack is an attacker with write access to the folder but without the key.
type attack struct {
	*testing.T
	dir string
}

func (a *attack) path(chain string, i int) string {
	a.Helper()
	segs, err := segments(a.dir, chain)
	if err != nil || len(segs) == 0 {
		a.Fatalf("%s: %v %v", chain, segs, err)
	}
	if i < 0 {
		i += len(segs)
	}
	return filepath.Join(a.dir, chain, segmentName(segs[i]))
}

// edit changes the lines of a segment.
func (a *attack) edit(chain string, i int, change func([][]byte) [][]byte) {
	a.Helper()
	file := a.path(chain, i)
	text, err := os.ReadFile(file)
	if err != nil {
		a.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	text = bytes.Join(change(lines[:len(lines)-1]), nil)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		a.Fatal(err)
	}
}

// rewrite makes a chain anew with changed entries: all hashes fit.
func (a *attack) rewrite(chain string, key *Key, change func(*Entry)) {
	a.Helper()
	segs, err := segments(a.dir, chain)
	if err != nil {
		a.Fatal(err)
	}
	var prev Hash
	for _, seg := range segs {
		var out []byte
		for l, err := range lines(a.dir, chain, seg) {
			if err != nil {
				a.Fatal(err)
			}
			e, err := parseLine(l.text)
			if err != nil {
				a.Fatal(err)
			}
			change(&e)
			e.Prev = prev
			e.Hash = e.sum(chain)
			if key != nil {
				key.sign(&e)
			}
			prev = e.Hash
			out = e.appendLine(out)
		}
		if err := os.WriteFile(filepath.Join(a.dir, chain, segmentName(seg)), out, 0o600); err != nil {
			a.Fatal(err)
		}
	}
}

const acme = "tenants/acme"

func TestAttacks(t *testing.T) {
	key, other := newKey(t), newKey(t)
	base := recorded(t, key)
	for name, tc := range map[string]struct {
		do   func(a *attack)
		want Finding // the first one, without its detail
		says string
	}{
		"a byte of a body": {func(a *attack) {
			a.edit(acme, 0, func(l [][]byte) [][]byte { l[1] = bytes.Replace(l[1], []byte("a < b"), []byte("a > b"), 1); return l })
		}, Finding{Tenant: "acme", File: "tenants/acme/00000000000000000001.jsonl", Line: 2, N: 2, What: Changed}, "the hash"},
		"a space": {func(a *attack) {
			a.edit(acme, 0, func(l [][]byte) [][]byte {
				l[2] = bytes.Replace(l[2], []byte(`,"kind"`), []byte(`, "kind"`), 1)
				return l
			})
		}, Finding{Tenant: "acme", Line: 3, N: 3, What: Changed}, "not as it was written"},
		"a line of junk": {func(a *attack) {
			a.edit(acme, 0, func(l [][]byte) [][]byte { l[2] = []byte("junk\n"); return l })
		}, Finding{Tenant: "acme", Line: 3, N: 3, What: Changed}, "not an entry"},
		"an entry with a hash that fits": {func(a *attack) {
			a.edit(acme, 0, func(l [][]byte) [][]byte {
				e, _ := parseLine(l[1])
				e.Subject = "events.acme.other.step_start"
				e.Hash = e.sum(acme)
				l[1] = e.appendLine(nil)
				return l
			})
		}, Finding{Tenant: "acme", Line: 3, N: 3, What: Replaced}, "does not follow"},
		"an entry left out": {func(a *attack) {
			a.edit(acme, 0, func(l [][]byte) [][]byte { return slices.Delete(l, 1, 2) })
		}, Finding{Tenant: "acme", Line: 2, N: 2, What: Missing}, "entries 2 to 2"},
		"the first entry": {func(a *attack) {
			a.edit(acme, 0, func(l [][]byte) [][]byte { return l[1:] })
		}, Finding{Tenant: "acme", Line: 1, N: 1, What: Missing}, "entries 1 to 1"},
		"the last entries": {func(a *attack) {
			a.edit(acme, -1, func(l [][]byte) [][]byte { return l[:len(l)-1] })
		}, Finding{Tenant: "acme", N: 15, What: Missing}, "the end of the chain"},
		"an entry twice": {func(a *attack) {
			a.edit(acme, 0, func(l [][]byte) [][]byte { return slices.Insert(l, 2, l[1]) })
		}, Finding{Tenant: "acme", Line: 3, N: 2, What: Added}, "after entry 2"},
		"an entry added at the end": {func(a *attack) {
			a.edit(acme, -1, func(l [][]byte) [][]byte {
				e, _ := parseLine(l[len(l)-1])
				e.N, e.Prev = e.N+1, e.Hash
				e.Hash = e.sum(acme)
				return append(l, e.appendLine(nil))
			})
		}, Finding{Tenant: "acme", N: 16, What: Added}, "does not cover"},
		"two swapped": {func(a *attack) {
			a.edit(acme, 0, func(l [][]byte) [][]byte { l[1], l[2] = l[2], l[1]; return l })
		}, Finding{Tenant: "acme", Line: 2, N: 2, What: Missing}, "entries 2 to 2"},
		"a chain made anew": {func(a *attack) {
			a.rewrite(acme, nil, func(e *Entry) {
				if e.N == 5 {
					e.Body = []byte(`{}`)
				}
			})
		}, Finding{Tenant: "acme", N: 4, What: Different}, "up to entry 3 all is as it was signed"},
		"a segment": {func(a *attack) {
			if err := os.Remove(a.path(acme, 1)); err != nil {
				a.Fatal(err)
			}
		}, Finding{Tenant: "acme", Line: 1, What: Missing}, "entries"},
		"a tenant": {func(a *attack) {
			if err := os.RemoveAll(filepath.Join(a.dir, acme)); err != nil {
				a.Fatal(err)
			}
		}, Finding{Tenant: "acme", N: 1, What: Missing}, "entries 1 to 15"},
		"the chain of another tenant": {func(a *attack) {
			if err := os.RemoveAll(filepath.Join(a.dir, acme)); err != nil {
				a.Fatal(err)
			}
			if err := os.CopyFS(filepath.Join(a.dir, acme), os.DirFS(filepath.Join(a.dir, "tenants/harbour"))); err != nil {
				a.Fatal(err)
			}
		}, Finding{Tenant: "acme", Line: 1, N: 1, What: Changed}, "of the tenant harbour"},
		"a tenant that never was": {func(a *attack) {
			if err := os.CopyFS(filepath.Join(a.dir, "tenants/new"), os.DirFS(filepath.Join(a.dir, acme))); err != nil {
				a.Fatal(err)
			}
			a.rewrite("tenants/new", nil, func(*Entry) {})
		}, Finding{Tenant: "new", Line: 1, N: 1, What: Added}, "does not cover"},
		"a head changed": {func(a *attack) {
			a.edit(headsChain, 0, func(l [][]byte) [][]byte { l[1] = bytes.Replace(l[1], []byte(`"n":`), []byte(`"n":1`), 1); return l })
		}, Finding{Line: 2, What: Changed}, "the hash"},
		"all heads signed anew": {func(a *attack) {
			a.rewrite(headsChain, &other, func(*Entry) {})
		}, Finding{Line: 1, N: 1, What: Unsigned}, "not among the keys"},
		"heads made anew without a key": {func(a *attack) {
			a.rewrite(headsChain, nil, func(e *Entry) { e.Position++ })
		}, Finding{Line: 1, N: 1, What: Unsigned}, "not valid"},
		"a head": {func(a *attack) {
			a.edit(headsChain, 0, func(l [][]byte) [][]byte { return slices.Delete(l, 0, 1) })
		}, Finding{N: 1, What: Missing}, "entries 1 to 1"},
		"all heads": {func(a *attack) {
			if err := os.RemoveAll(filepath.Join(a.dir, headsChain)); err != nil {
				a.Fatal(err)
			}
		}, Finding{N: 1, What: Missing}, "no heads"},
		"cut back to an older head": {func(a *attack) {
			if err := os.Remove(a.path(headsChain, -1)); err != nil {
				a.Fatal(err)
			}
		}, Finding{N: 17, What: Missing}, "the folder was truncated"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &attack{t, copied(t, base)}
			tc.do(a)
			_, _, sum := verified(t, VerifyConfig{Dir: base})
			found, _, _ := verified(t, VerifyConfig{Dir: a.dir, Keys: PublicKeys{key.Public()}, Anchor: map[uint64]Hash{sum.Head.N: sum.Head.Hash}})
			if len(found) == 0 {
				t.Fatal("the attack was not detected")
			}
			got := found[0]
			if tc.want.N == 0 {
				got.N = 0
			}
			if tc.want.Line == 0 {
				got.Line = 0
			}
			if tc.want.File == "" {
				got.File = ""
			}
			if tc.says == "the folder was truncated" { // after what follows from it
				got = found[slices.IndexFunc(found, func(f Finding) bool { return strings.Contains(f.Detail, tc.says) })]
				got.Line, got.File = 0, ""
				tc.want.N = got.N
			}
			detail := got.Detail
			got.Detail = ""
			if got != tc.want || !strings.Contains(detail, tc.says) {
				t.Errorf("%+v %q, want %+v %q", got, detail, tc.want, tc.says)
			}
		})
	}
}

// Bytes all over a line: another one is found, and in the right place.
func TestEachByte(t *testing.T) {
	key := newKey(t)
	base := recorded(t, key)
	for _, chain := range []string{acme, headsChain} {
		a := &attack{t, copied(t, base)}
		file := a.path(chain, 0)
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		second := bytes.IndexByte(whole, '\n') + 1
		end := second + bytes.IndexByte(whole[second:], '\n')
		for i := second; i < end; i += 13 {
			text := bytes.Clone(whole)
			text[i] ^= 1
			if text[i] == '\n' {
				continue
			}
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			found, _, _ := verified(t, VerifyConfig{Dir: a.dir, Keys: PublicKeys{key.Public()}})
			if len(found) == 0 || found[0].Line != 2 || found[0].File == "" {
				t.Fatalf("%s: byte %d, %q: %+v", chain, i-second, text[second:end], found)
			}
		}
	}
}

// A damaged folder is not continued.
func TestOpenDamaged(t *testing.T) {
	key := newKey(t)
	base := recorded(t, key)
	for name, do := range map[string]func(a *attack){
		"the end of a chain": func(a *attack) { a.edit(acme, -1, func(l [][]byte) [][]byte { return l[:len(l)-1] }) },
		"a tenant":           func(a *attack) { _ = os.RemoveAll(filepath.Join(a.dir, acme)) },
		"a head": func(a *attack) {
			a.edit(headsChain, -1, func(l [][]byte) [][]byte { l[0] = bytes.Replace(l[0], []byte(`"n":`), []byte(`"n":1`), 1); return l })
		},
	} {
		a := &attack{t, copied(t, base)}
		do(a)
		if s, err := Open(StoreConfig{Dir: a.dir, Key: key}); err == nil || !strings.Contains(err.Error(), "the audit is damaged") {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				_ = s.Close()
			}
		}
	}
	if _, err := Open(StoreConfig{Dir: copied(t, base), Key: newKey(t)}); err == nil || !strings.Contains(err.Error(), "LONGSHORE_AUDIT_KEYS") {
		t.Errorf("another key: %v", err)
	}
	s := openStore(t, StoreConfig{Dir: copied(t, base), Key: newKey(t), Keys: PublicKeys{key.Public()}})
	if s.Position().Sum() != 40 {
		t.Errorf("a new key: %d", s.Position().Sum())
	}
}

func TestKeys(t *testing.T) {
	key := newKey(t)
	back, err := ParseKey(key.Seed() + "\n")
	if err != nil || back.Public() != key.Public() {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"", "lsas_x", key.Public(), key.Seed() + "x"} {
		if _, err := ParseKey(text); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if strings.Contains(key.String()+key.GoString(), key.Seed()) {
		t.Error("the key shows itself")
	}
	if _, err := ParsePublicKeys(key.Seed()); err == nil || strings.Contains(err.Error(), key.Seed()) {
		t.Errorf("%v", err)
	}
	if keys, err := ParsePublicKeys(" " + key.Public() + " , " + newKey(t).Public()); err != nil || len(keys) != 2 {
		t.Errorf("%v %v", keys, err)
	}
}
