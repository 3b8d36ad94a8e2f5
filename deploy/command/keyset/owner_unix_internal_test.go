//go:build unix

package keyset

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/longshore-run/longshore/messages/bus/keyring"
)

// A keyset that is replaced still belongs to its owner, who alone may read it.
func TestReplacedKeysetKeepsItsOwner(t *testing.T) {
	t.Parallel()
	m, err := keyring.NewMaster()
	if err != nil {
		t.Fatal(err)
	}
	name, owner := filepath.Join(t.TempDir(), "fleet.keyset"), os.Geteuid()
	if err := write(name, m, false); err != nil {
		t.Fatal(err)
	}
	if owner == 0 {
		owner = 12345
		if err := os.Chown(name, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	if err := write(name, m, true); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if is, ok := info.Sys().(*syscall.Stat_t); !ok || int(is.Uid) != owner || info.Mode().Perm() != 0o600 {
		t.Errorf("%v of user %d, want %d", info.Mode(), is.Uid, owner)
	}
}
