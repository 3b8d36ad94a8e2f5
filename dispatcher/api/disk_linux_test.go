package api_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/longshore-run/longshore/dispatcher/api"
)

// A server whose disk is full no longer answers publishes, even after space is freed: that is named, and all continues
// after its restart.
func TestFullDisk(t *testing.T) {
	t.Parallel() // it waits for answers that do not come
	dir := t.TempDir()
	if err := syscall.Mount("longshore-test", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("left out: a disk that is really full needs the right to mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 12<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, "nats")
	ns := small(t, store, -1, 1<<30)
	url := dispatch(t, ns.ClientURL())
	fill(t, ns)
	rest, err := os.Create(filepath.Join(dir, "rest"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = rest.Write(make([]byte, 4<<10))
	}
	_ = rest.Close()
	for _, op := range api.Operations() {
		if op.ID == "submitTask" {
			if said := refusedByStore(t.Context(), t, url, op, strings.Repeat("x", 32<<10)); !strings.Contains(said, noSpace) {
				t.Errorf("a submit: %s", said)
			}
		}
	}
	h := &hall{t, nil, url}
	resp := h.send("GET", "/v1/tasks/none", "")
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("the status of a missing run: %s", resp.Status)
	}
	h.ready(http.StatusServiceUnavailable, noSpace)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	port := ns.Addr().(*net.TCPAddr).Port
	ns.Shutdown()
	ns.WaitForShutdown()
	small(t, store, port, 1<<30)
	h.ready(http.StatusOK, "")
}
