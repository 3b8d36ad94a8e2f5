package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/api"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	busfiles "github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
)

// uploads is a fleet that takes contents of 2 MiB, and 4 MiB of a tenant.
type uploads struct {
	*hall

	bus *bus.Bus
}

func openUploads(t *testing.T) *uploads {
	t.Helper()
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Abrupt: true, Version: "0.0.0", Log: slog.New(slog.DiscardHandler),
		Dev: settings.Dev{Runs: settings.Runs{Slots: 2, MaxAttempts: 5, WorkspaceBytes: 2 << 20}, UploadBytes: 4 << 20, Encryption: settings.Encryption{Encryption: settings.EncryptionOff}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	nc, err := nats.Connect(dev.NATS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	b, err := bus.Open(t.Context(), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &uploads{&hall{t, dev, "http://" + dev.API}, b}
}

// stores checks that a tenant has a content.
func (u *uploads) stores(tenant, content string) {
	u.t.Helper()
	var got bytes.Buffer
	if err := busfiles.New(u.bus).Get(u.t.Context(), tenant, manifest.HashOf([]byte(content)), int64(len(content)), &got); err != nil || got.String() != content {
		u.t.Errorf("%s has %d bytes of %d: %v", tenant, got.Len(), len(content), err)
	}
}

// left are the messages of a tenant's files.
func (u *uploads) left(tenant string) (subjects []string) {
	u.t.Helper()
	for subject, err := range u.bus.Stream(bus.StreamFiles).Subjects(u.t.Context(), "files."+tenant+".>") {
		if err != nil {
			u.t.Fatal(err)
		}
		subjects = append(subjects, subject)
	}
	return subjects
}

// nothingLeft waits until a tenant has nothing stored.
func (u *uploads) nothingLeft(tenant string) {
	u.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left := u.left(tenant)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			u.t.Fatalf("an upload that failed has left %q", left)
		}
	}
}

func pathOf(content string) string { return "/v1/files/" + manifest.HashOf([]byte(content)) }

func TestUploadOverHTTP(t *testing.T) {
	u := openUploads(t)
	for _, content := range []string{"", "x", large[:64<<10], large[:64<<10+1], large} {
		var got control.Content
		want := control.Content{Hash: manifest.HashOf([]byte(content)), Size: int64(len(content))}
		if u.do("PUT", pathOf(content), content, 200, &got); got != want {
			t.Errorf("stored %+v, want %+v", got, want)
		}
		u.stores("default", content)
		before := len(u.left("default"))
		if u.do("PUT", pathOf(content), content, 200, &got); len(u.left("default")) != before {
			t.Errorf("%d bytes are stored twice", len(content))
		}
	}
	var missing control.MissingReply
	hashes, err := json.Marshal(control.Hashes{Hashes: []string{manifest.HashOf([]byte("x")), manifest.HashOf([]byte("y")), manifest.HashOf([]byte(large))}})
	if err != nil {
		t.Fatal(err)
	}
	if u.do("POST", "/v1/files:missing", string(hashes), 200, &missing); len(missing.Missing) != 1 || missing.Missing[0] != manifest.HashOf([]byte("y")) {
		t.Errorf("missing: %v", missing)
	}
	if u.do("POST", "/v1/files:missing", string(hashes), 200, &missing, "Longshore-Tenant", "acme"); len(missing.Missing) != 3 {
		t.Errorf("another tenant learns what is stored: %v", missing)
	}
	u.do("POST", "/v1/files", `{"contents":[{"hash":"`+hashOfX+`","data":"eA=="},{"hash":"`+manifest.HashOf(nil)+`","data":""}]}`, 200, nil, "Longshore-Tenant", "acme")
	u.stores("acme", "x")
	u.stores("acme", "")
}

// What is refused is told, and leaves nothing.
func TestUploadsThatAreRefused(t *testing.T) {
	u := openUploads(t)
	other := strings.ToUpper(large)
	for name, tc := range map[string]struct {
		path, body, field string
		want              int
	}{
		"another content":             {pathOf(large), other, "hash", 400},
		"another small content":       {pathOf("x"), "y", "contents[0].hash", 400},
		"no hash":                     {"/v1/files/x", "x", "sha256", 400},
		"a hash in capitals":          {strings.ToUpper(pathOf("x")[len("/v1"):]), "x", "", 404},
		"a content beyond the limit":  {pathOf(strings.Repeat("x", 2<<20+1)), strings.Repeat("x", 2<<20+1), "", 413},
		"a parameter":                 {pathOf("x") + "?x=1", "x", "x", 400},
		"a small content of no bytes": {pathOf("x"), "", "contents[0].hash", 400},
	} {
		var p messages.Problem
		if u.do("PUT", tc.path, tc.body, tc.want, &p, "Longshore-Tenant", "acme"); p.Field != tc.field {
			t.Errorf("%s: %+v", name, p)
		}
		u.nothingLeft("acme")
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, u.url+pathOf("x"), io.MultiReader(strings.NewReader("x")))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusLengthRequired {
		t.Errorf("without a length: %s", resp.Status)
	}
	for body, want := range map[string]int{
		`{"hashes":[]}`: 400, `{"hashes":["x"]}`: 400, `{"hashes":["` + strings.Repeat(hashOfX+`","`, 1000) + hashOfX + `"]}`: 400, `{"hash":"x"}`: 400,
	} {
		u.do("POST", "/v1/files:missing", body, want, nil)
	}
	// As much as a tenant may have without a run that refers to it.
	for i := range 4 {
		u.do("PUT", pathOf(large[i:]), large[i:], 200, nil)
	}
	var p messages.Problem
	head := u.do("PUT", pathOf(large[4:]), large[4:], 429, &p)
	if p.Code != messages.CodeRateLimited || head.Get("Retry-After") == "" || !strings.Contains(p.Detail, "LONGSHORE_UPLOAD_BYTES") {
		t.Errorf("beyond the quota: %+v", p)
	}
	u.do("PUT", pathOf(large), large, 200, nil)
	u.do("PUT", pathOf(large[4:]), large[4:], 200, nil, "Longshore-Tenant", "acme")
}

// A client that is cut, or that sends nothing, costs a bounded time and leaves nothing.
func TestUploadsThatStop(t *testing.T) {
	u := openUploads(t)
	at := strings.TrimPrefix(u.attacked(api.Config{}), "http://")
	for name, after := range map[string]int{"stalls after a part": 600_000, "stalls at once": 0} {
		conn := u.dial(at)
		u.half(conn, after)
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(conn)
		if _ = conn.Close(); err != nil || !strings.Contains(string(said), " 408 ") {
			t.Errorf("%s: %.300s %v", name, said, err)
		}
		u.nothingLeft("default")
	}
	conn := u.dial(at)
	u.half(conn, 600_000)
	for deadline := time.Now().Add(patience); len(u.left("default")) < 2 && time.Now().Before(deadline); { // an entry and a part
		time.Sleep(10 * time.Millisecond)
	}
	_ = conn.Close()
	u.nothingLeft("default")
}

func (u *uploads) dial(at string) net.Conn {
	u.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(u.t.Context(), "tcp", at)
	if err != nil {
		u.t.Fatal(err)
	}
	return conn
}

// half sends the beginning of an upload.
func (u *uploads) half(conn net.Conn, bytes int) {
	u.t.Helper()
	if _, err := fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", pathOf(large), len(large), large[:bytes]); err != nil {
		u.t.Fatal(err)
	}
}

// A client uploads over NATS and over HTTP, what is missing alone and small contents together.
func TestUploadByTheClient(t *testing.T) {
	u := openUploads(t)
	over, err := u.dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	web, err := dispatcher.NewHTTP(u.url, "")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	for tenant, client := range map[string]*dispatcher.Client{"nats": over, "http": web} {
		t.Run(tenant, func(t *testing.T) {
			for _, content := range []string{"", "x", large} {
				c, err := client.Files().Upload(t.Context(), tenant, strings.NewReader(content))
				if err != nil || c.Size != int64(len(content)) {
					t.Fatalf("%+v, %v", c, err)
				}
				u.stores(tenant, content)
			}
			var all []dispatcher.Upload
			var size, done int64
			for i := range 300 {
				content := strings.Repeat("z", i)
				all = append(all, contentOf(content, content))
				size += int64(i)
			}
			progress := make(chan int64, len(all))
			if err := client.Files().UploadAll(t.Context(), tenant, all, func(n int64) { progress <- n }); err != nil {
				t.Fatal(err)
			}
			for range all {
				done += <-progress
			}
			if u.stores(tenant, strings.Repeat("z", 299)); done != size {
				t.Errorf("told of %d bytes of %d", done, size)
			}
			before := len(u.left(tenant))
			for name, changed := range map[string]dispatcher.Upload{
				"small": contentOf("as it was", "as it is now"), "large": contentOf(large[1:], large[2:]+"x"), "shorter": contentOf(large[1:], large[500:]),
			} {
				err := client.Files().UploadAll(t.Context(), tenant, []dispatcher.Upload{changed}, nil)
				field, _ := errors.AsType[*messages.FieldError](err)
				if !errors.Is(err, dispatcher.ErrContentChanged) && (field == nil || field.Field != "hash") {
					t.Errorf("a %s content that changed meanwhile: %v", name, err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			begun := func() { // its first part is stored
				for deadline := time.Now().Add(patience); len(u.left(tenant)) < before+2 && time.Now().Before(deadline); {
					time.Sleep(10 * time.Millisecond)
				}
				cancel()
			}
			stuck := dispatcher.Upload{Content: control.Content{Hash: manifest.HashOf([]byte("never sent")), Size: 900_000}, Open: func() (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(strings.NewReader(large[:600_000]), canceller{begun})), nil
			}}
			if err := client.Files().UploadAll(ctx, tenant, []dispatcher.Upload{stuck}, nil); err == nil {
				t.Error("an upload that was cancelled has ended")
			}
			for deadline := time.Now().Add(patience); len(u.left(tenant)) != before && time.Now().Before(deadline); {
				time.Sleep(20 * time.Millisecond)
			}
			if n := len(u.left(tenant)); n != before {
				t.Errorf("uploads that failed have left %d messages", n-before)
			}
			if err := client.Files().UploadAll(t.Context(), tenant, []dispatcher.Upload{contentOf(large[1:], large[1:])}, nil); err != nil {
				t.Error(err)
			}
			for i := 2; err == nil && i < 9; i++ {
				_, err = client.Files().Upload(t.Context(), tenant, strings.NewReader(large[i:]))
			}
			if !errors.Is(err, dispatcher.ErrUploadsFull) {
				t.Errorf("beyond the quota: %v", err)
			}
		})
	}
}

// canceller does something when it is read, and has nothing.
type canceller struct{ cancel func() }

func (c canceller) Read([]byte) (int, error) {
	c.cancel()
	return 0, context.Canceled
}

// contentOf is an upload that was said to be one content and has perhaps another.
func contentOf(was, is string) dispatcher.Upload {
	return dispatcher.Upload{
		Content: control.Content{Hash: manifest.HashOf([]byte(was)), Size: int64(len(was))},
		Open:    func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(is)), nil },
	}
}
