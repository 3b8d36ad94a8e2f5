package folder_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
)

// Many small files take few requests, and a second upload of them takes those alone that ask what is missing.
func TestManyFilesInFewRequests(t *testing.T) {
	const many, size = 2000, 1000
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 1, MaxAttempts: 5}}, Abrupt: true, Version: "0.0.0", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	to, err := url.Parse("http://" + dev.API)
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	client, err := dispatcher.NewHTTP(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	dir := t.TempDir()
	for i := range many {
		data := make([]byte, size)
		copy(data, strconv.Itoa(i))
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := scan(t, dir)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	hash, err := f.Upload(t.Context(), client, "", nil)
	if err != nil || hash == "" {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	first := requests.Swap(0)
	if _, err := f.Upload(t.Context(), client, "", nil); err != nil {
		t.Fatal(err)
	}
	again := requests.Load()
	t.Logf("%d files: %d requests, then %d; the heap of fleet and client together grew from %d to %d MB", many, first, again, before.HeapInuse>>20, after.HeapInuse>>20)
	if first > 12 || again > 4 {
		t.Errorf("%d requests, then %d", first, again)
	}
}
