package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// What the document says of requests about something that is not there is what they answer. Index and authentication are off here:
// those who need them refuse before they look.
func TestWhatIsMissingIsAsDeclared(t *testing.T) {
	h := open(t)
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Responses   map[string]struct{ Description string }
		}
	}
	h.do("GET", "/openapi.json", "", http.StatusOK, &document)
	bodies := map[string]string{
		"forkTask": `{"at":1}`, "steerTask": `{"message":"go"}`, "giveFeedback": `{"score":1}`, "answerTask": `{"text":"yes"}`, "pause": `{"kind":"agent","name":"missing"}`, "decideApproval": `{"decision":"approve","call":"c"}`,
	}
	queries := map[string]string{"getFile": "?name=a.txt", "getWorkspaceFile": "?name=a.txt"}
	first := map[string]bool{"taskSteps": true, "revokeKey": true}
	names := strings.NewReplacer("{kind}", "agent", "{revision}", "1", "{seq}", "999", "{id}", "missing", "{name}", "missing", "{workspace}", "missing")
	seen := 0
	for path, methods := range document.Paths {
		for method, op := range methods {
			says, declared := op.Responses["404"]
			if !declared || first[op.OperationID] {
				continue
			}
			seen++
			resp := h.send(strings.ToUpper(method), names.Replace(path)+queries[op.OperationID], bodies[op.OperationID])
			var p messages.Problem
			err := json.NewDecoder(resp.Body).Decode(&p)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusNotFound || !strings.HasPrefix(says.Description, string(p.Code)+": ") {
				t.Errorf("%s: %d %+v, the document says %q", op.OperationID, resp.StatusCode, p, says.Description)
			}
		}
	}
	const byName, checks = 4, 2 // about collections of memory, which come to be by being named; of what is not stored
	if want := (len(control.Operations()) - byName - checks) / 2; seen < want {
		t.Errorf("%d requests can miss something, want at least %d: the table says less than it did", seen, want)
	}
}
