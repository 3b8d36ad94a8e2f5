package doctor_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/longshore-run/longshore/deploy/command/doctor"
)

// A server whose disk was full acknowledges nothing until it is restarted, also when there is room again: the doctor says so.
func TestFullDisk(t *testing.T) {
	t.Parallel() // it waits for answers that do not come
	dir := t.TempDir()
	if err := syscall.Mount("longshore-test", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("left out: a disk that is really full needs the right to mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	onDisk := func(o *server.Options) {
		o.JetStream, o.JetStreamMaxStore, o.StoreDir = true, 1<<30, filepath.Join(dir, "nats")
	}
	ns := startNATS(t, onDisk)
	nc, js := connect(t, ns.ClientURL())
	setUp(t, nc)
	storage := func(url string) doctor.Finding {
		t.Helper()
		r, _ := examine(t, []string{"NATS_URL=" + url}, "--role", "dispatcher") // other checks may warn
		got := r.of("storage")
		if len(got) != 1 {
			t.Fatalf("storage: %+v", got)
		}
		return got[0]
	}
	if f := storage(ns.ClientURL()); f.Status != doctor.OK {
		t.Errorf("with room: %+v", f)
	}
	fill(t, js)
	rest, err := os.Create(filepath.Join(dir, "rest"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = rest.Write(make([]byte, 4<<10))
	}
	_ = rest.Close()
	if f := storage(ns.ClientURL()); f.Status != doctor.Fail {
		t.Errorf("full: %+v", f)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	ns.Shutdown()
	ns.WaitForShutdown()
	if f := storage(startNATS(t, onDisk).ClientURL()); f.Status != doctor.OK {
		t.Errorf("with room, and after a restart: %+v", f)
	}
}
