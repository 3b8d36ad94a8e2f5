package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is embedded.Start for tests that stop the servers themselves; stopping twice does no harm.
func start(t *testing.T, c embedded.Config) *embedded.Servers {
	t.Helper()
	return embeddedtest.Start(t, c)
}

func publish(t *testing.T, s *embedded.Servers, text string) {
	t.Helper()
	js := jetStream(t, s)
	if _, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{
		Name: "S", Subjects: []string{"s"}, Storage: jetstream.FileStorage,
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func lastMessage(t *testing.T, js jetstream.JetStream) string {
	t.Helper()
	stream, err := js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	return string(m.Data)
}

func jetStream(t *testing.T, s *embedded.Servers) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(embeddedtest.Conn(t, s))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func redisClient(t *testing.T, s *embedded.Servers) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(s.RedisURL)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opts)
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

func TestDataSurvivesStopAndStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	first := start(t, embedded.Config{Dir: dir})
	publish(t, first, "kept")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := start(t, embedded.Config{Dir: dir, SyncAlways: true})
	if diff := cmp.Diff("kept", lastMessage(t, jetStream(t, second))); diff != "" {
		t.Error(diff)
	}
}

func TestRestartKeepsAddressStreamsAndClients(t *testing.T) {
	s := start(t, embedded.Config{})
	publish(t, s, "kept")
	back := make(chan struct{}, 2)
	reconnected := func(*nats.Conn) { back <- struct{}{} }
	inProcess := embeddedtest.Conn(t, s, nats.ReconnectHandler(reconnected), nats.ReconnectWait(time.Millisecond))
	overTCP, err := nats.Connect(s.NATSURL, nats.ReconnectHandler(reconnected), nats.ReconnectWait(time.Millisecond), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer overTCP.Close()

	url := s.NATSURL
	s.StopNATS()
	if nc, err := s.Conn(); err == nil {
		nc.Close()
		t.Error("connected to a stopped server")
	}
	if err := s.StartNATS(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(url, s.NATSURL); diff != "" {
		t.Error(diff)
	}
	for range 2 {
		select {
		case <-back:
		case <-time.After(30 * time.Second):
			t.Fatal("a client did not come back")
		}
	}
	for _, nc := range []*nats.Conn{inProcess, overTCP} {
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("kept", lastMessage(t, js)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestRestartEmptiesRedis(t *testing.T) {
	s := start(t, embedded.Config{NATSAddr: embedded.NoListen})
	url := s.RedisURL
	rdb := redisClient(t, s)
	if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.StopRedis()
	if err := rdb.Get(t.Context(), "k").Err(); err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("stopped store answered: %v", err)
	}
	if err := s.StartRedis(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("restarted store: got %v, want no value", err)
	}
	if diff := cmp.Diff(url, s.RedisURL); diff != "" {
		t.Error(diff)
	}
}

func TestRedisKeysExpire(t *testing.T) {
	s := start(t, embedded.Config{NATSAddr: embedded.NoListen})
	rdb := redisClient(t, s)
	if err := rdb.Set(t.Context(), "k", "v", 20*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := rdb.Get(ctx, "k").Err()
		if errors.Is(err, redis.Nil) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoListenAndNoRedis(t *testing.T) {
	s := start(t, embedded.Config{NATSAddr: embedded.NoListen, NoRedis: true})
	if diff := cmp.Diff([]string{"", ""}, []string{s.NATSURL, s.RedisURL}); diff != "" {
		t.Error(diff)
	}
	publish(t, s, "x")
	if err := s.StartRedis(); err == nil {
		t.Error("StartRedis with NoRedis: want an error")
	}
}

func TestTakenPortIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	for name, c := range map[string]embedded.Config{
		"nats":  {NATSAddr: taken},
		"redis": {RedisAddr: taken},
	} {
		t.Run(name, func(t *testing.T) {
			c.Dir = t.TempDir()
			s, err := embedded.Start(t.Context(), c)
			if err == nil {
				t.Fatalf("started on a taken port: %v", s.Stop())
			}
			if want := name + " on " + taken; !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "in use") {
				t.Errorf("got %q, want it to contain %q and \"in use\"", err, want)
			}
			start(t, embedded.Config{Dir: c.Dir}) // the failed start has let go of the folder
		})
	}
}

func TestDirInUseIsNamed(t *testing.T) {
	dir := t.TempDir()
	first := start(t, embedded.Config{Dir: dir})
	s, err := embedded.Start(t.Context(), embedded.Config{Dir: dir})
	if err == nil {
		t.Fatalf("started twice on one folder: %v", s.Stop())
	}
	if !strings.Contains(err.Error(), dir) {
		t.Errorf("got %q, want it to name %s", err, dir)
	}
	publish(t, first, "unharmed")
}

func TestStoreIsClosedToOtherUsers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	start(t, embedded.Config{Dir: dir})
	for _, folder := range []string{dir, filepath.Join(dir, "jetstream")} {
		info, err := os.Stat(folder)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fs.FileMode(0o700), info.Mode().Perm()); diff != "" {
			t.Errorf("%s: %s", folder, diff)
		}
	}
}

func TestStopRemovesTheTemporaryFolderAndIsFinal(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s, err := embedded.Start(t.Context(), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, s, "x")
	if got := names(t, temp); len(got) != 1 {
		t.Fatalf("while it runs: got %v, want one folder", got)
	}
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, temp); len(got) != 0 {
		t.Errorf("after Stop: %v is left", got)
	}
	if s.StartNATS() == nil || s.StartRedis() == nil {
		t.Error("started after Stop: want errors")
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestStartRefusesABadConfig(t *testing.T) {
	for name, c := range map[string]embedded.Config{
		"NATSAddr":     {NATSAddr: "4222"},
		"RedisAddr":    {RedisAddr: ":6379"},
		"SyncInterval": {SyncInterval: -1},
		"MaxPayload":   {MaxPayload: 65 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := embedded.Start(t.Context(), c)
			if err == nil {
				t.Fatalf("started: %v", s.Stop())
			}
			if !strings.Contains(err.Error(), name+": ") {
				t.Errorf("got %q, want it to name %s", err, name)
			}
		})
	}
}

func TestStartObeysContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := embedded.Start(ctx, embedded.Config{Dir: t.TempDir()})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v and %v, want context.Canceled", s, err)
	}
}

func TestStreamsTakeMoreThanTheServersDefaults(t *testing.T) {
	s := start(t, embedded.Config{NoRedis: true})
	nc := embeddedtest.Conn(t, s)
	if diff := cmp.Diff(int64(2<<20), nc.MaxPayload()); diff != "" {
		t.Error(diff)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Storage: jetstream.MemoryStorage})
	if err != nil {
		t.Fatal(err)
	}
	const serversDefault = 1000
	for range serversDefault + 1 {
		if _, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{MemoryStorage: true}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestListeningBeyondThisMachineIsWarnedOf(t *testing.T) {
	var log bytes.Buffer
	s := start(t, embedded.Config{
		NATSAddr: embedded.NoListen, RedisAddr: "0.0.0.0:0", Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err := s.Stop(); err != nil { // nothing else writes to the buffer from here on
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "host=0.0.0.0") {
		t.Errorf("got log %q, want a warning with host=0.0.0.0", log.String())
	}
}

// A stream that never had a message works after its folder is encrypted, and one that had keeps what it has.
func TestAFolderIsEncryptedLater(t *testing.T) {
	dir := t.TempDir()
	stream := func(s *embedded.Servers, name string) {
		t.Helper()
		if _, err := jetStream(t, s).CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{
			Name: name, Subjects: []string{strings.ToLower(name)}, Storage: jetstream.FileStorage,
		}); err != nil {
			t.Fatal(err)
		}
	}
	plain := start(t, embedded.Config{Dir: dir, NoRedis: true})
	publish(t, plain, "before")
	stream(plain, "EMPTY")
	if err := plain.Stop(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := start(t, embedded.Config{Dir: dir, NoRedis: true, Key: strings.Repeat("k", 32)})
		if got := lastMessage(t, jetStream(t, s)); got != "before" {
			t.Errorf("the last message is %q", got)
		}
		stream(s, "EMPTY")
		ack, err := jetStream(t, s).Publish(t.Context(), "empty", []byte("after"))
		if err != nil {
			t.Fatal(err)
		}
		empty, err := jetStream(t, s).Stream(t.Context(), "EMPTY")
		if err != nil {
			t.Fatal(err)
		}
		if m, err := empty.GetLastMsgForSubject(t.Context(), "empty"); err != nil || m.Sequence != ack.Sequence {
			t.Errorf("the message %d is acknowledged and not found: %v", ack.Sequence, err)
		}
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}
