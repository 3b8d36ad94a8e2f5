package api_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/api"
	"github.com/longshore-run/longshore/messages"
)

// dispatch runs a dispatcher until the test ends, and returns where it answers.
func dispatch(t *testing.T, natsURL string) (url string) {
	t.Helper()
	var s settings.Dispatcher
	err := settings.Load(&s, []string{"NATS_URL=" + natsURL, "LONGSHORE_HTTP_ADDR=127.0.0.1:0", "LONGSHORE_INDEX=none", "LONGSHORE_ENCRYPTION=off", "LONGSHORE_LOGS_MAX_BYTES=1048576"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- fleet.Dispatcher(ctx, s, "0.0.0", slog.New(slog.DiscardHandler), func(addr string) { ready <- addr })
	}()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		<-done // it may not be able to say goodbye
	})
	select {
	case addr := <-ready:
		return "http://" + addr
	case err := <-done:
		done <- err
		t.Fatal(err)
		return ""
	}
}

// hashOfX is the SHA-256 of the text x.
const hashOfX = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

// asks makes a valid request of each operation that needs NATS.
func asks(op api.Operation) (path, body string) {
	bodies := map[string]string{
		"forkTask": `{"at":1}`, "steerTask": `{"message":"x"}`, "giveFeedback": `{"score":1}`, "decideApproval": `{"call":"c","decision":"approve"}`,
		"answerTask": `{"text":"x"}`, "submitTask": `{"input":"hi"}`, "runLite": `{"input":"hi"}`, "submitBatch": `{"custom_id":"1","input":"x"}`,
		"putSchedule": `{"every":"24h","task":{"input":"x"}}`, "applyAgent": `{"name":"x","instructions":"Be brief."}`, "putPrompt": `{"text":"x"}`,
		"missingFiles": `{"hashes":["` + hashOfX + `"]}`, "uploadFiles": `{"contents":[{"hash":"` + hashOfX + `","data":"eA=="}]}`, "putFile": "x",
		"putItems": `{"items":[{"id":"x","text":"x"}]}`, "putQuota": `{"maxQueued":5}`, "pause": `{"kind":"tenant","name":"x","reason":"x"}`, "validatePrompt": `{"id":"x","text":"x"}`, "validateAgent": `{"text":"name: x"}`,
	}
	queries := map[string]string{"purgeDeadLetters": "?confirm=true", "eraseData": "?confirm=true", "cancelTasks": "?agent=careful", "getFile": "?name=a.txt", "getWorkspaceFile": "?name=a.txt", "searchItems": "?q=x", "deleteItems": "?id=x"}
	path = strings.NewReplacer("{id}", "x", "{name}", "x", "{workspace}", "x", "{seq}", "1", "{kind}", "tenant", "{version}", "1", "{revision}", "1", "{sha256}", hashOfX).Replace(op.Path)
	return path + queries[op.ID], bodies[op.ID]
}

// refusedByStore asks an operation, which must say that it can be asked again.
func refusedByStore(ctx context.Context, t *testing.T, url string, op api.Operation, input ...string) (detail string) {
	t.Helper()
	path, body := asks(op)
	for _, in := range input {
		body = `{"input":"` + in + `"}`
	}
	req, err := http.NewRequestWithContext(ctx, op.Method, url+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return ""
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Errorf("%s: %v", op.ID, err)
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%s: %v", op.ID, err)
	}
	var p messages.Problem
	_ = json.Unmarshal(said, &p)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !p.Retryable && op.ID != "runLite" {
		t.Errorf("%s %s: %s, Retry-After %q: %s", op.Method, path, resp.Status, resp.Header.Get("Retry-After"), said)
	}
	return p.Detail
}

// noticed returns once a dispatcher knows that its connection is gone: until then it may answer what needs none.
func noticed(ctx context.Context, t *testing.T, url string) {
	t.Helper()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable {
			return
		}
	}
}

// While NATS is away, each operation says so and that it can be asked again.
func TestEveryOperationWhileNATSIsAway(t *testing.T) {
	t.Parallel() // it waits for answers that do not come
	servers := embeddedtest.Start(t, embedded.Config{NoRedis: true})
	url := dispatch(t, servers.NATSURL)
	servers.StopNATS()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	noticed(ctx, t, url)
	var wg sync.WaitGroup
	for _, op := range api.Operations() {
		if op.ID == "getOpenAPI" || op.ID == "getCaller" || strings.HasPrefix(op.Path, "/v1/keys") {
			continue // a constant; about the request alone; refused where authentication is disabled
		}
		wg.Go(func() { refusedByStore(ctx, t, url, op) })
	}
	wg.Wait()
}

// A server that has no room left is named by the answer to a submit and by the readiness, until it stores again.
func TestNoSpaceIsNamed(t *testing.T) {
	t.Parallel()
	ns := small(t, t.TempDir(), -1, 8<<20)
	url := dispatch(t, ns.ClientURL())
	js := fill(t, ns)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, op := range api.Operations() {
		if op.ID == "submitTask" {
			if said := refusedByStore(ctx, t, url, op); !strings.Contains(said, noSpace) {
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
	h.storageRefused("1")
	if err := js.PurgeStream("BLOBS"); err != nil {
		t.Fatal(err)
	}
	h.ready(http.StatusOK, "")
	h.storageRefused("0")
}

// storageRefused looks at the metric that the alert LongshoreCannotStore goes by.
func (h *hall) storageRefused(want string) {
	h.t.Helper()
	resp := h.send("GET", "/metrics", "")
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(said), "longshore_storage_refused "+want+"\n") {
		h.t.Errorf("metrics: %s, %v: storage_refused is not %s", resp.Status, err, want)
	}
}

const noSpace = "no space left"

// ready polls until the readiness is as wanted.
func (h *hall) ready(status int, reason string) {
	h.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		resp := h.send("GET", "/readyz", "")
		said, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			h.t.Fatal(err)
		}
		if resp.StatusCode == status && strings.Contains(string(said), reason) {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("ready: %s %s", resp.Status, said)
		}
	}
}

// small starts a NATS server with little room.
func small(t *testing.T, dir string, port int, most int64) *server.Server {
	t.Helper()
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true, JetStream: true, StoreDir: dir, JetStreamMaxStore: most, MaxPayload: 2 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	return ns
}

// fill publishes until the server refuses.
func fill(t *testing.T, ns *server.Server) nats.JetStreamContext {
	t.Helper()
	nc, err := nats.Connect(ns.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = js.Publish("blobs.acme.x.y.0-1", make([]byte, 1<<20))
	}
	t.Logf("refused: %v", err)
	return js
}
