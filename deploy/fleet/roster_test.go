//go:build unix

package fleet_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

// agentFolder is a folder of agents by name, each with the tools that it may use.
func agentFolder(t *testing.T, tools map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, list := range tools {
		text := fmt.Sprintf("apiVersion: longshore.run/v1\nkind: Agent\nmetadata: {name: %s}\nspec: {tools: [%s]}\n", name, list)
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// listed waits until so many workers answer: one that is ready may still be about to.
func (w *town) listed(n int) {
	w.t.Helper()
	eventually(w.t, "the workers answer", func() bool {
		list, err := w.client.Fleet().Workers(w.t.Context())
		return err == nil && len(list) == n
	})
}

// TestApplyAFolder applies the agents of a folder. Each is named, and so is each that no worker of the fleet could work.
func TestApplyAFolder(t *testing.T) {
	t.Parallel()
	w := open(t, longAckWait, func(*modelCall) reply { return reply{Text: "Done."} })
	env := []string{"NATS_URL=" + w.nats}
	revision := regexp.MustCompile(`revision \d+`)
	apply := func(dir, stdout, stderr string) {
		t.Helper()
		got := call(t, env, "agents", "apply", dir)
		got.stdout = revision.ReplaceAllString(got.stdout, "revision N")
		if want := (outcome{0, stdout, stderr}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	dir := agentFolder(t, map[string]string{"berths": "read_file, berth_price", "cranes": "read_file, write_file", "docks": ""})
	// Without workers nothing is known of what they will have.
	apply(dir, "agent berths applied, revision N\nagent cranes applied, revision N\nagent docks applied, revision N\n", "")
	w.worker("first")
	w.listed(1)
	apply(dir, "agent berths unchanged, revision N\nagent cranes unchanged, revision N\nagent docks unchanged, revision N\n",
		"warning: agent berths: no worker has the tool berth_price; until one has, its runs wait (does LONGSHORE_TOOLS of a worker grant it?)\n")
	apply(agentFolder(t, map[string]string{"gates": "gate"}), "agent gates applied, revision N\n",
		"warning: agent gates: no worker has the tool gate; until one has, its runs wait (does LONGSHORE_TOOLS of a worker grant it?)\n")
	apply(agentFolder(t, map[string]string{"locks": "read_file, writ_file"}), "agent locks applied, revision N\n",
		"warning: agent locks: no worker has the tool writ_file: did you mean write_file? Until one has, its runs wait\n")
	apply(agentFolder(t, map[string]string{"piers": "delegate"}), "agent piers applied, revision N\n",
		"warning: agent piers: spec.delegate is missing: each call of delegate is refused; name the agents in delegate.agents\n")
	apply(agentFolder(t, map[string]string{"quays": "delegate], delegate: {agents: [locks, nowhere]}, hooks: ["}), "agent quays applied, revision N\n",
		"warning: agent quays: delegate.agents: there is no agent \"nowhere\"; until there is, calls that name it are refused\n")
	apply(agentFolder(t, map[string]string{"ropes": "read_file], delegate: {agents: [locks]}, hooks: ["}), "agent ropes applied, revision N\n",
		"warning: agent ropes: delegate is not in spec.tools: it cannot delegate\n")
	w.toolWorker("second")
	w.listed(2)
	apply(agentFolder(t, map[string]string{"gates": "gate, moor"}), "agent gates applied, revision N\n", "")
}

// TestRequiresFromTheCommandLine submits a task for a label. Its run waits until a worker has it, and goes there.
func TestRequiresFromTheCommandLine(t *testing.T) {
	t.Parallel()
	w := open(t, longAckWait, func(*modelCall) reply { return reply{Text: "Done."} })
	w.worker("plain")
	env := []string{"NATS_URL=" + w.nats}
	waits := w.events(messages.EventRunWaiting)
	if got := call(t, env, "submit", "work", "--id", "heavy", "--requires", "gpu=true, zone=a"); got.code != 0 || got.stdout != "heavy\n" {
		t.Fatalf("%+v", got)
	}
	select {
	case <-waits:
	case <-time.After(patience):
		t.Fatal("its run does not wait for a worker that fits")
	}
	if got := call(t, env, "status", "heavy"); !strings.Contains(got.stdout, "It waits for a worker that fits: no worker has the label gpu=true.\n") {
		t.Errorf("%+v", got)
	}
	g := w.watch(dispatcher.Run("heavy"))
	w.worker("almost", "LONGSHORE_WORKER_LABELS=gpu=true,zone=b")
	w.worker("fit", "LONGSHORE_WORKER_LABELS=zone=a,gpu=true")
	completed(t, g.end(), "Done.")
	if owners := w.owners(g.run); owners[len(owners)-1] != "fit" {
		t.Errorf("it was worked by %q", owners) // those before have found that they do not fit
	}
}

// TestWorkersAreListedWithWhatTheyHave reads the columns that tell which runs fit a worker.
func TestWorkersAreListedWithWhatTheyHave(t *testing.T) {
	t.Parallel()
	w := open(t, longAckWait, func(*modelCall) reply { return reply{Text: "Done."} })
	w.worker("gpu", "LONGSHORE_WORKER_LABELS=zone=a,gpu=true")
	w.toolWorker("plain")
	w.listed(2)
	env := []string{"NATS_URL=" + w.nats}
	got := call(t, env, "workers")
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	columns := regexp.MustCompile(` {2,}`)
	var listed [][]string
	for line := range strings.Lines(got.stdout) {
		row := columns.Split(strings.TrimSpace(line), -1)
		listed = append(listed, append(row[:1:1], row[max(len(row)-2, 0):]...))
	}
	want := [][]string{
		{"NAME", "LABELS", "TOOLS"},
		{"gpu", "gpu=true,zone=a", "ask_human,delegate,delete_file,edit_file,list_files,make_dir,move_file,read_file,read_files,scratchpad_append,scratchpad_clear,scratchpad_read,scratchpad_search,search_files,write_file,write_files"},
		{"plain", "-", "ask_human,cast_off,crash,delegate,delete_file,edit_file,gate,list_files,make_dir,moor,move_file,panics,read_file,read_files,scratchpad_append,scratchpad_clear,scratchpad_read,scratchpad_search,search_files,write_file,write_files"},
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("%s\n%s", diff, got.stdout)
	}
}
