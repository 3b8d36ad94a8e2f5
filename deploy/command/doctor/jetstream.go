package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/bus"
)

// Shares of a limit, in percent.
const (
	nearly = 80
	full   = 95
)

// Bounds of what clocks may differ. Timers of parks and delays go by them.
const (
	someSkew  = time.Second
	muchSkew  = 30 * time.Second
	longSync  = 10 * time.Second
	maxAnswer = 1 << 20 // bytes of an answer over HTTP that are read
)

// account looks at JetStream itself, and what of it the account may use.
func (s *store) account(ctx context.Context) []Finding {
	var info *jetstream.AccountInfo
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		info, err = s.inspect.Account(ctx)
		return err
	})
	switch {
	case errors.Is(err, errDenied):
		return []Finding{skip("jetstream", asDispatcher, "%v", err)}
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return []Finding{fail("jetstream", "write `jetstream: enabled` into the account of this user in nats-server.conf", "it is off for this account")}
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders):
		return []Finding{fail("jetstream", "start nats-server with -js, or with a jetstream block in nats-server.conf", "it is off on this server")}
	case errors.Is(err, bus.ErrOld):
		return []Finding{fail("jetstream", "upgrade nats-server: Longshore needs its message schedules", "%v", err)}
	case err != nil:
		return []Finding{fail("jetstream", "look at the server's log; a cluster needs a majority of its servers", "%v", err)}
	}
	out := []Finding{ok("jetstream", "API level %d", info.API.Level)}
	limits := info.Limits
	out = append(out, used("account disk", "raise max_file of the account, or let dispatchers keep less (LONGSHORE_EVENTS_MAX_AGE, LONGSHORE_RETENTION)",
		info.Store, limits.MaxStore, bytesOf))
	if limits.MaxStreams > 0 {
		out = append(out, used("account streams", "raise max_streams of the account", uint64(max(info.Streams, 0)), int64(limits.MaxStreams), number))
	}
	if limits.MaxConsumers > 0 {
		out = append(out, used("account consumers", "raise max_consumers of the account: each watcher and each lane is one", uint64(max(info.Consumers, 0)), int64(limits.MaxConsumers), number))
	}
	return out
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// used holds a use against a limit; none is 0 or less.
func used(check, do string, use uint64, limit int64, unit func(int64) string) Finding {
	n := int64(min(use, 1<<62))
	if limit <= 0 {
		return ok(check, "%s, without a limit of the account", unit(n))
	}
	text := fmt.Sprintf("%s of %s", unit(n), unit(limit))
	switch share := float64(n) / float64(limit) * 100; {
	case share >= full:
		return fail(check, do, "%s", text)
	case share >= nearly:
		return warn(check, do, "%s", text)
	default:
		return ok(check, "%s", text)
	}
}

// setUp holds streams and buckets against what the protocol needs.
func (s *store) setUp(ctx context.Context) []Finding {
	const startOne = "start a dispatcher: it creates what is missing"
	var out []Finding
	denied, missing := []string{}, []string{}
	names := s.inspect.Streams()
	for _, name := range names {
		var state *bus.StreamState
		err := s.ask(ctx, func(ctx context.Context) (err error) {
			state, err = s.inspect.Stream(ctx, name)
			return err
		})
		switch {
		case errors.Is(err, errDenied):
			denied = append(denied, name)
			continue
		case errors.Is(err, bus.ErrMissing):
			missing = append(missing, name)
			continue
		case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
			return []Finding{skip("streams", "", "JetStream is off")}
		case err != nil:
			out = append(out, fail("stream "+name, "look at the server's log; a stream of a cluster needs a majority of its copies", "%v", err))
			continue
		}
		s.streams[name] = state
		if state.Wrong != nil {
			wrong, do, _ := strings.Cut(state.Wrong.Error(), ": change it with ")
			if do = "change it with " + do; do == "change it with " {
				do = "start a dispatcher of this version"
			}
			out = append(out, fail("stream "+name, do, "%s", wrong))
		}
		if state.Config.MaxBytes > 0 {
			if f := used("stream "+name, "raise max_bytes with `nats stream edit "+name+"`", state.State.Bytes, state.Config.MaxBytes, bytesOf); f.Status != OK {
				out = append(out, f)
			}
		}
	}
	if len(missing) > 0 {
		out = append(out, fail("streams", startOne, "missing: %s", strings.Join(missing, ", ")))
	}
	if len(denied) > 0 {
		out = append(out, skip("streams", asDispatcher, "%v: %s", errDenied, strings.Join(denied, ", ")))
	}
	if len(out) == 0 {
		out = append(out, ok("streams", "%d, as the protocol needs them", len(names)))
	}
	if len(s.queueStreams()) == 0 {
		return out
	}
	err := s.ask(ctx, s.inspect.Wakes)
	switch {
	case errors.Is(err, errDenied):
		out = append(out, skip("wake-ups", asDispatcher, "%v", err))
	case errors.Is(err, bus.ErrMissing):
		out = append(out, fail("wake-ups", startOne, "%v", err))
	case err != nil:
		wrong, do, _ := strings.Cut(err.Error(), ": remove it with ")
		out = append(out, fail("wake-ups", "remove it with "+do, "%s", wrong))
	}
	return out
}

// copies looks at how many there are of each stream, and whether they are at one.
func (s *store) copies(context.Context) []Finding {
	var out []Finding
	fewest, most, cluster := 0, 0, ""
	for _, name := range s.inspect.Streams() {
		state := s.streams[name]
		if state == nil {
			continue
		}
		n := state.Config.Replicas
		if fewest == 0 || n < fewest {
			fewest = n
		}
		most = max(most, n)
		if c := state.Cluster; c != nil {
			cluster = c.Name
			if lost := behind(c); lost != "" {
				out = append(out, fail("copies of "+name, "bring the server back, or look at its log", "%s", lost))
			}
		}
	}
	switch {
	case most == 0:
		return out
	case cluster == "" && most == 1:
		return append(out, ok("copies", "1 of each stream on a single server: what its disk loses is lost"))
	case cluster != "" && fewest == 1:
		return append(out, warn("copies", "set LONGSHORE_REPLICAS=3 and change the streams with `nats stream edit --replicas 3`",
			"1 of some streams in cluster %s: with its server the fleet stops", cluster))
	case fewest != most:
		return append(out, warn("copies", "give all streams the same number with `nats stream edit --replicas`", "%d of some streams, %d of others", fewest, most))
	default:
		return append(out, ok("copies", "%d of each stream in cluster %s", most, cluster))
	}
}

// leaders looks at which servers lead the streams of a kind, if there are several: those of logs, of events and of the queue.
func (s *store) leaders(context.Context) []Finding {
	return slices.Concat(s.leadersOf("leaders of logs", bus.StreamRuns), s.leadersOf("leaders of events", bus.StreamEvents),
		s.leadersOf("leaders of the queue", bus.StreamTasks))
}

func (s *store) leadersOf(check, stream string) []Finding {
	of, leads := 0, map[string]int{}
	for name, state := range s.streams {
		if strings.HasPrefix(name, stream+"_") && state.Cluster != nil && state.Cluster.Leader != "" {
			of++
			leads[state.Cluster.Leader]++
		}
	}
	if of < 2 {
		return nil
	}
	for server, n := range leads {
		if n == of {
			return []Finding{warn(check, "have some of them led elsewhere: `nats stream cluster balance`, or `nats stream cluster step-down "+stream+"_1`",
				"%s leads all %d streams: that they are divided is of no use", server, of)}
		}
	}
	return []Finding{ok(check, "%d streams are led by %s", of, render.Count(int64(len(leads)), "server"))}
}

// behind says which copies of a stream are not what they should be.
func behind(c *jetstream.ClusterInfo) string {
	if c.Leader == "" {
		return "it has no leader"
	}
	var lost []string
	for _, p := range c.Replicas {
		switch {
		case p.Offline:
			lost = append(lost, p.Name+" is offline")
		case !p.Current:
			lost = append(lost, fmt.Sprintf("%s is behind by %s", p.Name, render.Count(int64(p.Lag), "message")))
		}
	}
	return strings.Join(lost, ", ")
}

// varz is what of a server's monitoring counts here.
type varz struct {
	JetStream struct {
		Config *struct {
			Sync   time.Duration `json:"sync_interval"`
			Always bool          `json:"sync_always"`
			Most   int64         `json:"max_storage"`
		} `json:"config"`
		Stats *struct {
			Store uint64 `json:"storage"`
		} `json:"stats"`
	} `json:"jetstream"`
}

// syncing looks at how long the server leaves what it acknowledged to the operating system. It tells no client.
func (s *store) syncing(ctx context.Context) []Finding {
	const check = "sync interval"
	if s.monitor == "" {
		return []Finding{skip(check, "see that sync_interval in nats-server.conf is 100ms, or always, or give --monitor", "NATS shows it to no client")}
	}
	var v varz
	if err := s.fetch(ctx, strings.TrimRight(s.monitor, "/")+"/varz", &v); err != nil {
		return []Finding{warn(check, "check --monitor: it is http_port of nats-server.conf", "the monitoring of the server does not answer: %s", network(err))}
	}
	if v.JetStream.Config == nil {
		return []Finding{warn(check, "check that --monitor is that of the same server", "the monitoring endpoint reports no JetStream")}
	}
	var out []Finding
	switch c := v.JetStream.Config; {
	case c.Always:
		out = append(out, ok(check, "always: each message is on the disk before it is acknowledged"))
	case c.Sync == 0 || c.Sync > longSync:
		out = append(out, warn(check, "set sync_interval: 100ms in the jetstream block of nats-server.conf",
			"%s: a loss of power takes what was acknowledged within it", short(c.Sync)))
	default:
		out = append(out, ok(check, "%s", c.Sync))
	}
	if stats := v.JetStream.Stats; stats != nil {
		out = append(out, used("server disk", "raise max_file_store of the jetstream block, or the disk", stats.Store, v.JetStream.Config.Most, bytesOf))
	}
	return out
}

// fetch reads a JSON document over HTTP.
func (d *doctor) fetch(ctx context.Context, address string, into any) error {
	ctx, cancel := d.within(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("not an address")
	}
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	return nil
}

// storage looks whether the server stores.
func (s *store) storage(ctx context.Context) []Finding {
	const check, do = "storage", "make room on the server's disk, or raise its max_file_store, then restart nats-server"
	err := s.ask(ctx, s.inspect.Store)
	switch {
	case err == nil:
		return []Finding{ok(check, "the server stores")}
	case errors.Is(err, errDenied), errors.Is(err, nats.ErrNoResponders): // without the stream, which another check reports
		return []Finding{skip(check, asDispatcher, "%v", err)}
	case errors.Is(err, context.DeadlineExceeded):
		return []Finding{fail(check, do, "the server acknowledges nothing that is stored: its disk is full, or was")}
	default:
		return []Finding{fail(check, do, "%v", err)}
	}
}

// clock compares this machine's with the server's, by the answer that came fastest.
func (s *store) clock(context.Context) []Finding {
	var best *bus.StreamState
	for _, state := range s.streams {
		if !state.TimeStamp.IsZero() && (best == nil || state.Took < best.Took) {
			best = state
		}
	}
	if best == nil {
		return []Finding{skip("clock", "", "no stream could be asked for the server's time")}
	}
	return []Finding{skew(best.TimeStamp.Sub(best.Asked.Add(best.Took/2)), best.Took/2)}
}

// skew judges a difference that is known but for an error.
func skew(differs, within time.Duration) Finding {
	const do = "let chrony, ntpd or systemd-timesyncd set the clock of this machine and of the server"
	by := differs.Abs()
	text := fmt.Sprintf("this machine and the server differ by %s, give or take %s", short(by), short(within))
	switch {
	case by > muchSkew+within:
		return fail("clock", do, "%s: timers and schedules fire at the wrong time", text)
	case by > someSkew+within:
		return warn("clock", do, "%s", text)
	default:
		return ok("clock", "%s", text)
	}
}

// room looks at how many consumers streams have.
func (s *store) room(context.Context) []Finding {
	var out []Finding
	look := func(state *bus.StreamState, check, do string) {
		if state != nil && state.Config.MaxConsumers > 0 {
			out = append(out, used(check, do, uint64(max(state.State.Consumers, 0)), int64(state.Config.MaxConsumers), number))
		}
	}
	queue := s.queueStreams()
	slices.SortStableFunc(queue, func(x, y *bus.StreamState) int { return cmp.Compare(y.State.Consumers, x.State.Consumers) })
	for _, state := range queue[:min(1, len(queue))] { // the fullest partition
		look(state, "lanes", "raise max_consumers with `nats stream edit "+state.Config.Name+"`: each tenant with tasks has one at each priority")
	}
	if state := s.fullest(bus.StreamEvents); state != nil {
		look(state, "watchers", "raise max_consumers with `nats stream edit "+state.Config.Name+"`, or have fewer clients follow events")
	}
	return out
}

// fullest is the stream of a name, or that of several with the most consumers; nil: there is none.
func (s *store) fullest(stream string) (most *bus.StreamState) {
	for name, state := range s.streams {
		if name == stream || strings.HasPrefix(name, stream+"_") {
			if most == nil || state.State.Consumers > most.State.Consumers {
				most = state
			}
		}
	}
	return most
}
