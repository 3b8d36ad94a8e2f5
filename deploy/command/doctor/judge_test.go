package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

func TestJudgements(t *testing.T) {
	worker := func(version string, draining bool) messages.WorkerStatus {
		return messages.WorkerStatus{Version: version, Draining: draining, Slots: 4, Busy: 1}
	}
	members := func(queued int, list ...messages.WorkerStatus) Finding {
		s := &store{doctor: &doctor{version: "1"}, queued: queued}
		return s.members(list)
	}
	leaders := func(stream string, servers ...string) Finding {
		s := &store{streams: map[string]*bus.StreamState{bus.StreamEvents: {StreamInfo: &jetstream.StreamInfo{Cluster: &jetstream.ClusterInfo{Leader: "z"}}}}}
		for i, server := range servers {
			info := &jetstream.StreamInfo{Cluster: &jetstream.ClusterInfo{Leader: server}}
			s.streams[bus.PartitionName(stream, i, len(servers))] = &bus.StreamState{StreamInfo: info}
		}
		return append(s.leaders(t.Context()), Finding{Found: "nothing"})[0]
	}
	for name, tt := range map[string]struct {
		got    Finding
		status Status
		text   string
	}{
		"leaders on two servers": {leaders(bus.StreamRuns, "a", "b", "a"), OK, "3 streams are led by 2 servers"},
		"leaders on one server":  {leaders(bus.StreamRuns, "a", "a", "a"), Warn, "a leads all 3 streams"},
		"one leads all events":   {leaders(bus.StreamEvents, "a", "a", "a"), Warn, "a leads all 3 streams"},
		"one leads the queue":    {leaders(bus.StreamTasks, "a", "a", "a"), Warn, "a leads all 3 streams"},
		"one stream of logs":     {leaders(bus.StreamRuns, "a"), "", "nothing"},
		"clocks agree":           {skew(-20*time.Millisecond, time.Millisecond), OK, "20ms"},
		"unknown":                {skew(4*time.Second, 10*time.Second), OK, ""},
		"clocks differ":          {skew(-2*time.Second, time.Millisecond), Warn, "2s"},
		"clocks differ a lot":    {skew(time.Hour, time.Second), Fail, "wrong time"},
		"no limit":               {used("x", "", 1<<63, 0, bytesOf), OK, "without a limit"},
		"a little":               {used("x", "", 10, 100, number), OK, "10 of 100"},
		"nearly":                 {used("x", "", 80, 100, number), Warn, "80 of 100"},
		"full":                   {used("x", "", 99, 100, number), Fail, "99 of 100"},
		"much free":              {space("x", 500<<30, 1000<<30), OK, "500.0 GiB of"},
		"a large disk":           {space("x", 50<<30, 1000<<30), OK, ""},
		"a small disk":           {space("x", 3<<30, 10<<30), OK, ""},
		"little free":            {space("x", 1<<30, 2<<30), Warn, ""},
		"a small share":          {space("x", 9<<30, 1000<<30), Warn, ""},
		"hardly any":             {space("x", 1<<20, 1000<<30), Fail, "1.0 MiB"},
		"one worker":             {members(0, worker("1", false)), OK, "version 1"},
		"no worker":              {members(0), Warn, "none"},
		"no worker for tasks":    {members(3), Fail, "wait: 3"},
		"all drain":              {members(0, worker("1", true)), Warn, "1 drain"},
		"two versions":           {members(0, worker("1", false), worker("2", false)), Warn, "versions 1, 2"},
		"another version":        {members(0, worker("2", false)), Warn, "this program is 1"},
	} {
		if tt.got.Status != tt.status || !strings.Contains(tt.got.Found, tt.text) {
			t.Errorf("%s: %+v", name, tt.got)
		}
	}
}

func TestBehind(t *testing.T) {
	for want, c := range map[string]*jetstream.ClusterInfo{
		"":                          {Leader: "a", Replicas: []*jetstream.PeerInfo{{Name: "b", Current: true}}},
		"it has no leader":          {},
		"b is offline":              {Leader: "a", Replicas: []*jetstream.PeerInfo{{Name: "b", Offline: true}, {Name: "c", Current: true}}},
		"b is behind by 7 messages": {Leader: "a", Replicas: []*jetstream.PeerInfo{{Name: "b", Lag: 7}}},
	} {
		if got := behind(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What others wrote cannot steer a terminal.
func TestFindingText(t *testing.T) {
	f := fail("x\x1b[2J", "do\x07", "found\n\x1b]0;%s", "y")
	if got := f.text(); got != "fail  x\\x1b[2J            found \\x1b]0;y\n                          → do\\x07\n" {
		t.Errorf("%q", got)
	}
}
