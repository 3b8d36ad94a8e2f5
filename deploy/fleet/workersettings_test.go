//go:build unix

package fleet_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
)

// What a dispatcher and a worker are told by variables holds for the runs that they work.
func TestLimitsAreSettings(t *testing.T) {
	t.Parallel()
	held := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices a disconnect only after the request
		<-r.Context().Done()
	}))
	t.Cleanup(held.Close)
	w := open(t, shortAckWait, func(c *modelCall) reply {
		switch {
		case c.Task == "silent model":
			<-c.gone
			return reply{}
		case c.Task == "slow tool" && c.Turn == 0:
			return reply{Tool: "gate", Args: "{}"}
		default:
			return reply{Text: "It says: " + c.Last}
		}
	}, "LONGSHORE_MAX_INPUT=30000")
	w.toolWorker("limited", gateVariable+"="+held.URL, "LONGSHORE_TOOL_TIMEOUT=300ms", "LONGSHORE_MODEL_START_TIMEOUT=3s",
		"LONGSHORE_MODEL_RETRIES=0", "LONGSHORE_BLOB_BYTES=4096", "LONGSHORE_MAX_INPUT=20000")
	silent, slow := w.watch(w.submit("silent model")), w.watch(w.submit("slow tool", withTools))
	impatient := w.watch(w.submit("slow tool", func(t *messages.Task) { t.Agent = "impatient" }))
	patient := w.watch(w.submit("slow tool", func(t *messages.Task) { t.Agent = "patient" }))
	large, much := w.watch(w.submit(strings.Repeat("x", 10_000))), w.watch(w.submit(strings.Repeat("x", 25_000)))

	if r := silent.end(); r.Error == nil || r.Error.Code != messages.CodeModelTimeout || !strings.Contains(r.Error.Message, "no answer within 3s") {
		t.Errorf("LONGSHORE_MODEL_START_TIMEOUT: %+v, %v", r, r.Error)
	}
	if n := w.model.counts()["silent model 0"]; n != 1 {
		t.Errorf("LONGSHORE_MODEL_RETRIES: %d calls, want 1", n)
	}
	if text, _ := slow.end().Result.(string); !strings.Contains(text, "300ms") {
		t.Errorf("LONGSHORE_TOOL_TIMEOUT: the model was told %q", text)
	}
	if text, _ := impatient.end().Result.(string); !strings.Contains(text, "200ms") {
		t.Errorf("toolTimeout below LONGSHORE_TOOL_TIMEOUT: the model was told %q", text)
	}
	if text, _ := patient.end().Result.(string); !strings.Contains(text, "300ms") {
		t.Errorf("toolTimeout above LONGSHORE_TOOL_TIMEOUT: the model was told %q", text)
	}
	if r := large.end(); r.Status != messages.StatusCompleted {
		t.Errorf("%+v, %v", r, r.Error)
	}
	js, err := jetstream.New(w.nc)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := js.Stream(t.Context(), bus.StreamBlobs)
	if err != nil {
		t.Fatal(err)
	}
	info, err := blobs.Info(t.Context(), jetstream.WithSubjectFilter("blobs."+large.run.Tenant+"."+large.run.Run+".>"))
	if err != nil {
		t.Fatal(err)
	}
	if len(info.State.Subjects) == 0 {
		t.Error("LONGSHORE_BLOB_BYTES: an entry of 10,000 bytes is no blob")
	}
	if r := much.end(); r.Error == nil || r.Error.Code != messages.CodeInvalidInput || !strings.Contains(r.Error.Message, "larger than 20000 bytes") {
		t.Errorf("LONGSHORE_MAX_INPUT of a worker: %+v, %v", r, r.Error)
	}
	m, err := w.nc.Request(control.SubjectSubmit, []byte(`{"input":"`+strings.Repeat("x", 30_001)+`"}`), patience)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(m.Data), "larger than 30000 bytes") {
		t.Errorf("LONGSHORE_MAX_INPUT of a dispatcher: %s", m.Data)
	}
}
