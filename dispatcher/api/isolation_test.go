package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher/api"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// An admin of one tenant asks each operation for what another tenant has, by its right name. All is as if it was not
// there, and none of it changes.
func TestAnAdminSeesNothingOfAnotherTenant(t *testing.T) {
	g := openGuarded(t)
	theirs, ours := g.key("harbour", control.RoleAdmin), g.key("acme", control.RoleAdmin)
	g.do("POST", "/v1/tasks?wait=30s", `{"id":"r1","input":"hi","session":"s1","labels":{"team":"secret"}}`, 200, nil, theirs...)
	g.do("POST", "/v1/tasks/r1/feedback", `{"score":1,"comment":"secret"}`, 200, nil, theirs...)
	g.do("POST", "/v1/tasks", `{"id":"r2","input":"write","agent":"careful"}`, 202, nil, theirs...)
	resp := g.send("GET", "/v1/tasks/r2/events", "", theirs...)
	for e := range events(resp.Body) {
		if e.name == messages.EventApprovalRequested {
			break
		}
	}
	_ = resp.Body.Close()
	g.do("PUT", "/v1/schedules/n1", `{"every":"24h","task":{"input":"secret"}}`, 200, nil, theirs...)
	g.do("POST", "/v1/batches?id=b1", `{"custom_id":"l1","input":"secret"}`, 200, nil, theirs...)
	g.do("PUT", "/v1/memory/n1/items", `{"items":[{"id":"i1","text":"secret"}]}`, 200, nil, theirs...)
	g.publish("tasks.normal.harbour.bad", `{"input":"secret","agent":"unknown"}`)
	var dead control.DeadList
	for len(dead.Letters) == 0 {
		g.do("GET", "/v1/dead-letters", "", 200, &dead, theirs...)
	}
	seq := strconv.FormatUint(dead.Letters[0].Seq, 10)

	bodies := map[string]string{
		"forkTask": `{"at":1}`, "steerTask": `{"message":"x"}`, "giveFeedback": `{"score":1}`, "decideApproval": `{"decision":"approve"}`,
		"answerTask": `{"text":"x"}`, "submitTask": `{"input":"hi"}`, "runLite": `{"input":"hi"}`, "submitBatch": `{"custom_id":"1","input":"x"}`,
		"putItems": `{"items":[{"id":"own","text":"x"}]}`,
	}
	queries := map[string]string{"purgeDeadLetters": "?confirm=true", "eraseData": "?confirm=true&subject=secret", "cancelTasks": "?agent=careful", "getFile": "?name=a.txt", "getWorkspaceFile": "?name=a.txt", "searchItems": "?q=secret", "deleteItems": "?id=i1"}
	collection := regexp.MustCompile("^(listItems|searchItems|putItems|deleteItems)$") // of the caller: it comes to be by being named
	shared := regexp.MustCompile("^/v1/(agents|prompts)")                              // belong to all tenants
	for _, op := range api.Operations() {
		if shared.MatchString(op.Path) || op.Needs.FleetWide() || op.ID == "putSchedule" || op.ID == "putFile" { // what these make is the caller's own
			continue
		}
		for _, name := range []string{"r1", "r2", "b1", "s1", "n1"} {
			path := strings.NewReplacer("{id}", name, "{name}", name, "{workspace}", name, "{seq}", seq).Replace(op.Path) + queries[op.ID]
			if path == op.Path && name != "r1" {
				continue
			}
			resp := g.send(op.Method, path, bodies[op.ID], ours...)
			said, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if op.ID == "listEvents" { // the denials of our own requests below say whom they named
				said = bytes.ReplaceAll(said, []byte(`"tenant":"harbour"`), nil)
				said = bytes.ReplaceAll(said, []byte(`"target":"r2"`), nil) // a collection of our own
			}
			if strings.Contains(op.Path, "{") && !collection.MatchString(op.ID) && resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s of %s: %s: %s", op.ID, name, resp.Status, said)
			}
			if resp.StatusCode < 300 && (strings.Contains(string(said), "secret") || strings.Contains(string(said), "harbour") || strings.Contains(string(said), `"r2"`)) {
				t.Errorf("%s tells of another tenant: %s", op.ID, said)
			}
			named := g.send(op.Method, path, bodies[op.ID], append([]string{"Longshore-Tenant", "harbour"}, ours...)...)
			_ = named.Body.Close()
			if named.StatusCode != http.StatusForbidden {
				t.Errorf("%s with the name of the other tenant: %s", op.ID, named.Status)
			}
		}
	}
	var state control.TaskState
	if g.do("GET", "/v1/tasks/r2", "", 200, &state, theirs...); state.Status != messages.StatusWaiting || state.Cancel {
		t.Errorf("their run: %+v", state)
	}
	var said control.FeedbackList
	if g.do("GET", "/v1/tasks/r1/feedback", "", 200, &said, theirs...); len(said.Feedback) != 1 {
		t.Errorf("their feedback: %+v", said)
	}
	for _, path := range []string{"/v1/sessions/s1", "/v1/schedules/n1", "/v1/batches/b1", "/v1/dead-letters/" + seq} {
		g.do("GET", path, "", 200, nil, theirs...)
	}

	g.publish("tasks.normal.acme.bad", `{"input":"x","agent":"unknown"}`)
	for dead = (control.DeadList{}); len(dead.Letters) == 0; {
		g.do("GET", "/v1/dead-letters", "", 200, &dead, ours...)
	}
	letter := fmt.Sprintf("/v1/dead-letters/%d", dead.Letters[0].Seq)
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
	}{
		"a letter becomes a task of another":  {"POST", letter + "/redrive", `{"input":"x","tenant":"harbour"}`, 400},
		"a letter becomes one of default":     {"POST", letter + "/redrive", `{"input":"x","tenant":"default"}`, 400},
		"letters without a tenant":            {"GET", "/v1/dead-letters?unaddressed=true", "", 403},
		"a schedule's task is of another":     {"PUT", "/v1/schedules/n2", `{"every":"24h","task":{"input":"x","tenant":"harbour"}}`, 400},
		"a schedule is of another":            {"PUT", "/v1/schedules/n2", `{"every":"24h","tenant":"harbour","task":{"input":"x"}}`, 400},
		"a task names its tenant twice":       {"POST", "/v1/tasks", `{"input":"x","tenant":"acme","tenant":"harbour"}`, 400},
		"a task names its tenant in capitals": {"POST", "/v1/tasks", `{"input":"x","Tenant":"harbour"}`, 400},
		"events of no run":                    {"GET", "/v1/tasks/_/events", "", 404},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hall{t, g.dev, g.url}
			h.do(tc.method, tc.path, tc.body, tc.status, nil, ours...)
		})
	}
	g.do("POST", "/v1/tasks?wait=30s", `{"id":"mine","input":"hi"}`, 200, nil, ours...)
	g.do("POST", "/v1/tasks/mine/fork", `{"at":1,"newId":"_"}`, 400, nil, ours...) // its events would be those of no run
}

// A page in the browser of a user who runs a fleet without keys can send requests that need no CORS permission.
func TestPagesOfOthersSubmitNothing(t *testing.T) {
	h := open(t)
	for name, tc := range map[string]struct {
		headers []string
		status  int
	}{
		"a program":            {nil, 202},
		"a page of another":    {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 403},
		"an older browser":     {[]string{"Origin", "https://evil.example"}, 403},
		"no origin to name":    {[]string{"Origin", "null"}, 403},
		"a page of its own":    {[]string{"Sec-Fetch-Site", "same-origin", "Origin", h.url}, 202},
		"an address was typed": {[]string{"Sec-Fetch-Site", "none"}, 202},
		"what curl -d says":    {[]string{"Content-Type", "application/x-www-form-urlencoded"}, 202},
		"a form of another":    {[]string{"Sec-Fetch-Site", "cross-site", "Content-Type", "application/x-www-form-urlencoded"}, 403},
		"one of the same site": {[]string{"Sec-Fetch-Site", "same-site"}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hall{t, h.dev, h.url}
			h.do("POST", "/v1/tasks", `{"input":"hi"}`, tc.status, nil, tc.headers...)
		})
	}
}
