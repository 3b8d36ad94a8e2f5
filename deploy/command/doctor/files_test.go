package doctor_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/manifest"
)

// What is young is left alone, and folders of workers that have died are counted, and removed when that is asked for.
func TestDoctorFiles(t *testing.T) {
	dev := startFleet(t)
	nc, _ := connect(t, dev.NATS)
	b, err := bus.Open(t.Context(), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := files.New(b).Put(t.Context(), "acme", manifest.HashOf([]byte("x")), 1, bytes.NewReader([]byte("x"))); err != nil {
		t.Fatal(err)
	}
	dir := private(t)
	left := filepath.Join(dir, ".claims", "dead", "acme.r1.c1")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	environ := []string{"NATS_URL=" + dev.NATS, "LONGSHORE_WORKSPACES=" + dir}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"files", "-o", "json"}, `{"contents":0,"unfinished":0,"references":0,"workspaces":0,"folders":1,"broken":0,"removed":false}`},
		{[]string{"files", "-o", "json", "--fix"}, `{"contents":0,"unfinished":0,"references":0,"workspaces":0,"folders":1,"broken":0,"removed":true}`},
		{[]string{"files", "-o", "json"}, `{"contents":0,"unfinished":0,"references":0,"workspaces":0,"folders":0,"broken":0,"removed":false}`},
	} {
		out, err := runDoctor(t, environ, tc.args...)
		var compact bytes.Buffer
		if jerr := json.Compact(&compact, []byte(out)); jerr != nil || err != nil || strings.TrimSpace(compact.String()) != tc.want {
			t.Errorf("%v: %s, %v, want %s", tc.args, out, err, tc.want)
		}
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
	if out, err := runDoctor(t, environ, "files"); err != nil || out != "No file is without a run.\n" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := runDoctor(t, []string{"LONGSHORE_URL=http://127.0.0.1:1"}, "files"); err == nil || !strings.Contains(err.Error(), "unset it") {
		t.Errorf("over HTTP: %q, %v", out, err)
	}
}
