package agenttest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools/web"
	"github.com/longshore-run/longshore/tools/web/webtest"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
)

// An agent that calls servers is tested without a network: a handler answers, and the hosts of the configuration and the grants of
// the agent hold as for real servers.
func TestAgentThatCallsServers(t *testing.T) {
	asked := []string{}
	servers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Host+r.URL.Path)
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "https://other.example/new", http.StatusFound)
			return
		}
		_, _ = fmt.Fprint(w, "three ships")
	})
	calling, err := webtest.Tools(web.Config{Hosts: []string{"api.example.com", "other.example"}}, nil, servers)
	if err != nil {
		t.Fatal(err)
	}
	agent := messages.Definition{
		Name: "caller", Tools: []string{"http_get"}, MaxSteps: 10, Grants: &messages.Grants{Hosts: []string{"api.example.com"}},
	}
	model := agenttest.Replies(
		agenttest.Call("http_get", `{"url":"https://api.example.com/list"}`), agenttest.Call("http_get", `{"url":"https://api.example.com/old"}`),
		agenttest.Call("http_get", `{"url":"https://elsewhere.example/"}`), agenttest.Text("Three."),
	)
	agenttest.Run(t, agenttest.Config{Config: embed.Config{Agent: agent, Tools: calling, Model: model}}, "How many?").
		Want(t, "model", "tool http_get", "model", "tool http_get: policy", "model", "tool http_get: policy", "model", "completed")
	if got := strings.Join(asked, ", "); got != "GET api.example.com/list, GET api.example.com/old" {
		t.Errorf("the servers were asked for %s", got)
	}
}
