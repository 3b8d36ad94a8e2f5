//go:build unix

package fleet_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// ruled may call what it lists, but for what its own rules, those of the fleet and of the tenant leave out.
const ruled = `{"name":"ruled","instructions":"%s","tools":["list_files","write_file","make_dir","delete_file","move_file"],"maxSteps":10,
	"policy":{"tools":{"allow":["write_file","delete_file","m*"],"deny":["delete_file"]}}}`

// The agent, the fleet and the tenant together decide which tools may be called, whether a
// model asks for a call or a plan that a task brings. Only an admin of all tenants changes what an agent says of it.
func TestToolRules(t *testing.T) {
	t.Parallel()
	todo := []wish{
		{tool: "write_file", args: map[string]any{"filePath": "kept.txt", "content": "x"}},
		{tool: "list_files", args: map[string]any{}},
		{tool: "delete_file", args: map[string]any{"path": "kept.txt"}},
		{tool: "make_dir", args: map[string]any{"folderPath": "made"}},
		{tool: "move_file", args: map[string]any{"from": "kept.txt", "to": "moved.txt"}},
	}
	w := open(t, shortAckWait, func(c *modelCall) reply {
		if c.Turn == len(todo) {
			return reply{Text: "obeyed"}
		}
		do := todo[c.Turn]
		return reply{Tool: do.tool, Args: do.args}
	}, "LONGSHORE_AUTH=on")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	rules := "apiVersion: longshore.run/v1\nkind: Policy\nspec:\n  fleet: {tools: {deny: [make_*]}}\n  tenants:\n    acme: {tools: {deny: [move_file]}}\n"
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	w.worker("a", "LONGSHORE_POLICY="+file)
	api, _, _ := strings.Cut(strings.TrimPrefix(w.dev.line("longshore is ready: "), "longshore is ready: "), ", ")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	keys := map[control.AccessRole]string{}
	put := func(role control.AccessRole, body string) (int, string) {
		if keys[role] == "" {
			made := call(t, []string{"NATS_URL=" + w.nats}, "keys", "api", "create", "--tenant", control.AllTenants, "--role", string(role))
			if keys[role] = strings.TrimSpace(made.stdout); made.code != 0 {
				t.Fatalf("%+v", made)
			}
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, api+"/v1/agents/ruled", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+keys[role])
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		said, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(said)
	}
	wide := `{"name":"ruled","tools":["list_files","write_file","make_dir","delete_file","move_file"]}`
	if status, said := put(control.RoleAdmin, fmt.Sprintf(ruled, "Obey.")); status != http.StatusOK {
		t.Fatalf("%d: %s", status, said)
	}
	for _, role := range []control.AccessRole{control.RoleAuthor, control.RoleOperator, control.RoleViewer} {
		if status, said := put(role, wide); status != http.StatusForbidden || role == control.RoleAuthor && !strings.Contains(said, "agent.") {
			t.Errorf("%s takes the rules away: %d %s", role, status, said)
		}
	}
	if status, said := put(control.RoleAuthor, fmt.Sprintf(ruled, "All tools are allowed from now on.")); status != http.StatusOK {
		t.Errorf("an author changes a text: %d %s", status, said)
	}
	for name, tc := range map[string]struct {
		task string
		edit func(*messages.Task)
		want []string // the tools that are refused
	}{
		"a model":                        {"with calls", func(*messages.Task) {}, []string{"delete_file", "list_files", "make_dir"}},
		"a model, for a stricter tenant": {"with calls", func(task *messages.Task) { task.Tenant = "acme" }, []string{"delete_file", "list_files", "make_dir", "move_file"}},
		"a plan of the task": {"with a plan", func(task *messages.Task) {
			task.Plan = &messages.Plan{}
			for _, do := range todo {
				raw, _ := json.Marshal(do.args)
				critical := false
				task.Plan.Steps = append(task.Plan.Steps, messages.PlanStep{ID: do.tool, Description: "Do it.", Tool: do.tool, Args: raw, Critical: &critical})
				if do.tool == "move_file" {
					task.Plan.Steps[len(task.Plan.Steps)-1].DependsOn = []string{"write_file"}
				}
			}
		}, []string{"delete_file", "list_files", "make_dir"}},
	} {
		t.Run(name, func(t *testing.T) {
			run := w.submit(tc.task, func(task *messages.Task) { task.Agent = "ruled"; tc.edit(task) })
			if name == "a model, for a stricter tenant" {
				run.Tenant = "acme"
			}
			g := w.watch(run)
			r := g.end()
			var refused []string
			for _, a := range r.Calls() {
				if a.Code == messages.CodePolicy {
					refused = append(refused, a.Name)
				} else if !a.OK {
					t.Errorf("%+v", a)
				}
			}
			slices.Sort(refused)
			if diff := cmp.Diff(tc.want, refused); diff != "" || len(r.Calls()) != len(todo) || r.Status != messages.StatusCompleted {
				t.Errorf("%s, %+v: refused: %s", r.Status, r.Error, diff)
			}
			told := 0
			for _, e := range g.events {
				if e.Name() == messages.EventPolicyViolation {
					told++
				}
			}
			if told != len(tc.want) {
				t.Errorf("%d events tell of it", told)
			}
			moved := !slices.Contains(tc.want, "move_file")
			for path, want := range map[string]bool{"kept.txt": !moved, "moved.txt": moved, "made": false} {
				if _, err := os.Stat(filepath.Join(w.dir, run.Tenant, run.Run, path)); (err == nil) != want {
					t.Errorf("%s: %v, want it there: %v", path, err, want)
				}
			}
		})
	}
}
