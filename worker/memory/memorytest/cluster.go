package memorytest

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// togetherTimeout bounds how long servers take to find one another.
const togetherTimeout = time.Minute

// nodes of a cluster, the fewest that Redis recommends.
const nodes = 3

const slots = 16384

// Cluster starts three redis-servers as one cluster, each a master of a third of the slots, and ends them with the test. Stop ends all of them;
// Start starts them again, empty, and waits until the cluster answers. It is false when there is no redis-server on the PATH.
func Cluster(tb testing.TB) (Server, bool) {
	tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return Server{}, false
	}
	var all []*process
	var clients []*redis.Client
	for range nodes {
		p := &process{path: path, addr: freeAddr(tb), dir: tb.TempDir()}
		_, bus, _ := net.SplitHostPort(freeAddr(tb)) // by default the port plus 10,000, which may be none
		p.options = []string{"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "5000"}
		p.start(tb)
		tb.Cleanup(p.stop)
		rdb := redis.NewClient(&redis.Options{Addr: p.addr, MaintNotificationsConfig: disabled()})
		tb.Cleanup(func() { _ = rdb.Close() })
		all, clients = append(all, p), append(clients, rdb)
		first, last := (len(all)-1)*slots/nodes, len(all)*slots/nodes-1
		if err := rdb.ClusterAddSlotsRange(tb.Context(), first, last).Err(); err != nil {
			tb.Fatal(err)
		}
		if host, port, _ := net.SplitHostPort(p.addr); len(all) > 1 {
			if err := clients[0].Do(tb.Context(), "CLUSTER", "MEET", host, port, bus).Err(); err != nil {
				tb.Fatal(err)
			}
		}
	}
	each := func(do func(*process)) {
		for _, p := range all {
			do(p)
		}
	}
	together(tb, clients)
	return Server{
		Name:  "cluster of redis-servers",
		URL:   fmt.Sprintf("redis://%s?addr=%s&addr=%s", all[0].addr, all[1].addr, all[2].addr),
		Start: func(tb testing.TB) { tb.Helper(); each(func(p *process) { p.start(tb) }); together(tb, clients) },
		Stop:  func(testing.TB) { each((*process).stop) },
	}, true
}

// together waits until every node says that the cluster is well and complete.
func together(tb testing.TB, clients []*redis.Client) {
	tb.Helper()
	for _, rdb := range clients {
		until(tb, func(ctx context.Context) (string, bool) {
			info, err := rdb.ClusterInfo(ctx).Result()
			is := strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d", slots)) &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", nodes))
			return fmt.Sprint("the cluster is not complete: ", info, err), is
		})
	}
}

// until asks again and again until it is so, and says how it was last if that takes too long.
func until(tb testing.TB, ask func(context.Context) (how string, is bool)) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), togetherTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		how, is := ask(ctx)
		if is {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tb.Fatalf("not within %s: %s", togetherTimeout, how)
		}
	}
}
