package cli_test

import (
	"bytes"
	"encoding/json"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli"
)

func TestVersion(t *testing.T) {
	run := func(args ...string) string {
		root := &cobra.Command{Use: "longshore"}
		root.AddCommand(cli.Version("1.2.3", true))
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(append([]string{"version"}, args...))
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got, want := run(), "longshore 1.2.3 ("+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+")\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(run("-o", "json")), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"version": "1.2.3", "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}, got); diff != "" {
		t.Error(diff)
	}
}

// What people say about a run is stored: a part of an id that was chosen by hand may mean another run. Reading takes it.
func TestFeedbackIsNotForAPartOfAChosenID(t *testing.T) {
	f := newFleet(t)
	f.run(t, "submit", "--id", "nightly-7", "hello")
	if _, _, err := executeWith(t, f.connect, "", "feedback", "nightly", "--score", "1"); err == nil {
		t.Error("feedback was stored on the run that the beginning of a chosen id names")
	}
	if _, errs := f.run(t, "feedback", "nightly"); errs == "" {
		t.Error("reading says nothing")
	}
}
