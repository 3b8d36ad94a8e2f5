package modeltest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// Recordings are real exchanges with a provider. They are not part of the repository: LONGSHORE_RECORDINGS names their folder.
type Recordings struct {
	Dir     string // the folder; empty: the test is left out
	Open    func(tb testing.TB, endpoint httpstream.Endpoint) model.Provider
	Path    string // what the addresses of its requests end in
	AtLeast int    // exchanges, or the folder lacks some
	// Plainly reads a well-formed body in the simplest way, to compare with.
	Plainly func(t *testing.T, body string) Reading
	// Read adds Signature and Model of a reply, if Plainly reads them; nil: nothing.
	Read func(reply *model.Reply, into *Reading)
}

// Reading is what a body says.
type Reading struct {
	Text, Reasoning  string
	Calls            []messages.ToolCall
	Usage            messages.Usage
	Stop             messages.StopReason
	Signature, Model string // of providers that Read them
}

// Replay replays the exchanges, whole and in pieces, and compares what the provider makes of them with a plain reading.
func (r Recordings) Replay(t *testing.T) {
	files := r.files(t)
	played := 0
	for _, file := range files {
		bodies := r.bodies(t, file)
		if played += len(bodies); len(bodies) == 0 {
			continue // of a provider with a protocol of its own
		}
		name, _ := filepath.Rel(r.Dir, file)
		t.Run(name, func(t *testing.T) {
			for _, body := range bodies {
				for _, piece := range []int{0, 13} {
					r.replay(t, body, piece)
				}
			}
		})
	}
	t.Logf("%d exchanges", played)
	if played < r.AtLeast {
		t.Errorf("only %d exchanges were found in %d files of %s", played, len(files), r.Dir)
	}
}

func (r Recordings) replay(t *testing.T, body string, piece int) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { Write(w, body, piece) }))
	defer s.Close()
	o := Call(t.Context(), r.Open(t, httpstream.Endpoint{BaseURL: s.URL, APIKey: key}), Hello())
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	got := Reading{Text: o.Reply.Message.Text(), Calls: o.Reply.Message.Calls(), Usage: o.Reply.Usage, Stop: o.Reply.Stop}
	for _, b := range o.Reply.Message.Content {
		if b.Reasoning != nil {
			got.Reasoning += b.Reasoning.Text
		}
	}
	if r.Read != nil {
		r.Read(o.Reply, &got)
	}
	if diff := cmp.Diff(r.Plainly(t, body), got); diff != "" {
		t.Error(diff)
	}
	if o.Text != got.Text || o.Reasoning != got.Reasoning {
		t.Errorf("streamed %q and %q, replied %q and %q", o.Text, o.Reasoning, got.Text, got.Reasoning)
	}
}

// Bench measures what the longest recorded stream costs, from the wire to the reply.
func (r Recordings) Bench(b *testing.B) {
	longest := ""
	for _, file := range r.files(b) {
		for _, body := range r.bodies(b, file) {
			if len(body) > len(longest) && !strings.HasPrefix(body, "{") {
				longest = body
			}
		}
	}
	p := r.Open(b, httpstream.Endpoint{BaseURL: "http://host", NoAuth: true, Transport: Fresh(longest)})
	b.SetBytes(int64(len(longest)))
	b.ReportAllocs()
	for b.Loop() {
		if o := Call(b.Context(), p, Hello()); o.Err != nil {
			b.Fatal(o.Err)
		}
	}
	b.ReportMetric(float64(strings.Count(longest, "data:")), "events")
}

func (r Recordings) files(tb testing.TB) []string {
	tb.Helper()
	if r.Dir == "" {
		tb.Skip("left out: LONGSHORE_RECORDINGS names no folder of recorded provider traffic")
	}
	files, err := filepath.Glob(filepath.Join(r.Dir, "*", "*", "*.yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	return files
}

// bodies are those of the answers in a file, streamed or in one piece.
func (r Recordings) bodies(tb testing.TB, file string) (bodies []string) {
	tb.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	var f struct {
		Interactions []struct {
			Request  struct{ URL string }
			Response struct {
				Body string
				Code int
			}
		}
	}
	if err := yaml.Load(raw, &f); err != nil {
		tb.Fatal(err)
	}
	for _, i := range f.Interactions {
		if strings.HasSuffix(i.Request.URL, r.Path) && i.Response.Code == http.StatusOK {
			bodies = append(bodies, i.Response.Body)
		}
	}
	return bodies
}
