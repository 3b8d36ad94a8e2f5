package memorytest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// masterName is what the Sentinel of the tests calls its master.
const masterName = "longshore"

// Watched is a master with one replica, and the Sentinel that watches them.
type Watched struct {
	Server                      // Stop and Start are those of master and replica; Sentinel keeps running.
	servers map[string]*process // by address
	watcher *redis.SentinelClient
}

// Sentinel starts a master, a replica and a Sentinel, and ends them with the test. It is false when there is no
// redis-server on the PATH.
func Sentinel(tb testing.TB) (*Watched, bool) {
	tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, false
	}
	one := func(options ...string) *process {
		p := &process{path: path, addr: freeAddr(tb), dir: tb.TempDir(), options: options}
		p.start(tb)
		tb.Cleanup(p.stop)
		return p
	}
	master := one("--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(master.addr)
	replica := one("--replicaof", host+" "+port)
	follows(tb, replica.addr)

	p := &process{path: path, addr: freeAddr(tb), dir: tb.TempDir()}
	_, own, _ := net.SplitHostPort(p.addr)
	config := filepath.Join(p.dir, "sentinel.conf") // which Sentinel rewrites
	text := fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %s\nsentinel monitor %s %s %s 1\nsentinel down-after-milliseconds %[3]s 1000\n"+
		"sentinel failover-timeout %[3]s 5000\n", own, p.dir, masterName, host, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	p.run(context.WithoutCancel(tb.Context()), tb, "+monitor master", config, "--sentinel")
	tb.Cleanup(p.stop)
	w := &Watched{
		servers: map[string]*process{master.addr: master, replica.addr: replica},
		watcher: redis.NewSentinelClient(&redis.Options{Addr: p.addr, MaintNotificationsConfig: disabled()}),
	}
	tb.Cleanup(func() { _ = w.watcher.Close() })
	w.Server = Server{
		Name:  "redis-servers with Sentinel",
		URL:   fmt.Sprintf("redis+sentinel://%s/0?master_name=%s", p.addr, masterName),
		Start: func(tb testing.TB) { tb.Helper(); master.start(tb); replica.start(tb); follows(tb, replica.addr) },
		Stop:  func(testing.TB) { master.stop(); replica.stop() },
	}
	until(tb, func(ctx context.Context) (string, bool) {
		found, err := w.watcher.Replicas(ctx, masterName).Result()
		is := err == nil && len(found) == 1 && found[0]["master-link-status"] == "ok"
		return fmt.Sprint("Sentinel does not know the replica: ", found, err), is
	})
	return w, true
}

// master is the address of the master, as Sentinel says.
func (w *Watched) master(ctx context.Context) (string, error) {
	addr, err := w.watcher.GetMasterAddrByName(ctx, masterName).Result()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(addr[0], addr[1]), nil
}

// KillMaster kills the master without a warning and returns its address. Sentinel makes the replica the master some seconds later.
func (w *Watched) KillMaster(tb testing.TB) string {
	tb.Helper()
	addr, err := w.master(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	w.servers[addr].stop()
	return addr
}

// FailedOver waits until another server than the one at the address is the master.
func (w *Watched) FailedOver(tb testing.TB, from string) {
	tb.Helper()
	until(tb, func(ctx context.Context) (string, bool) {
		now, err := w.master(ctx)
		return fmt.Sprint("Sentinel has not replaced ", from, err), err == nil && now != from
	})
}

// follows waits until a replica has all of its master.
func follows(tb testing.TB, addr string) {
	tb.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaintNotificationsConfig: disabled()})
	defer func() { _ = rdb.Close() }()
	until(tb, func(ctx context.Context) (string, bool) {
		info, err := rdb.Info(ctx, "replication").Result()
		return fmt.Sprint("the replica does not follow: ", info, err), strings.Contains(info, "master_link_status:up")
	})
}

func disabled() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// Real runs a test on each way in which Redis is run, each in a subtest with servers of its own: one server, a cluster, and
// a master that Sentinel watches. Without redis-server on the PATH it says that they were left out.
func Real(t *testing.T, test func(*testing.T, Server)) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Log("no redis-server on the PATH: one server, a cluster and Sentinel were left out")
		return
	}
	t.Run("redis-server", func(t *testing.T) { s, _ := RedisServer(t); test(t, s) })
	t.Run("cluster", func(t *testing.T) { s, _ := Cluster(t); test(t, s) })
	t.Run("sentinel", func(t *testing.T) { w, _ := Sentinel(t); test(t, w.Server) })
}
