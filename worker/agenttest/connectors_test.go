package agenttest_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools/kv"
	tool "github.com/longshore-run/longshore/tools/sql"
	"github.com/longshore-run/longshore/tools/web"
	"github.com/longshore-run/longshore/tools/web/webtest"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
)

// An agent that uses several connectors runs without a network, a server or a model: it reads a ship's arrival from a service, asks a
// database who waits for it, and remembers that it told them. The second run finds that, and does not tell them again.
func TestAgentWithSeveralConnectors(t *testing.T) {
	dir := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, "port.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE waiting (ship TEXT, who TEXT); INSERT INTO waiting VALUES ('Ann', 'ada'), ('Ann', 'bob'), ('Eve', 'cyd')"); err != nil {
		t.Fatal(err)
	}
	told := []string{}
	port := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			told = append(told, r.URL.Path+" with "+r.Header.Get("Idempotency-Key")[:4])
		}
		_, _ = fmt.Fprint(w, "Ann is at berth 7")
	})
	calling, err := webtest.Tools(web.Config{Hosts: []string{"port.example"}, Methods: []string{"GET", "POST"}}, nil, port)
	if err != nil {
		t.Fatal(err)
	}
	keeping, err := kv.Tools(kv.NewMemory(kv.Limits{Keys: 10, Bytes: 1000, TTL: time.Hour}, agenttest.Clock()), kv.Config{TTL: messages.Duration(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	asking, err := tool.Tools(tool.Config{Databases: map[string]*tool.Database{"port": {Driver: tool.SQLite, File: "port.db"}}}, tool.Sources{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	cfg := agenttest.Config{Config: embed.Config{
		Agent: messages.Definition{
			Name: "herald", Tools: []string{"http_get", "http_request", "kv_get", "kv_set", "sql_query"}, MaxSteps: 10,
			Grants: &messages.Grants{Hosts: []string{"port.example"}, KV: messages.KVTenant},
		},
		Tools: slices.Concat(calling, keeping, asking),
	}}
	first := agenttest.Replies(
		agenttest.Call("kv_get", `{"key":"told/Ann"}`),
		agenttest.Call("http_get", `{"url":"https://port.example/arrivals"}`),
		agenttest.Call("sql_query", `{"database":"port","sql":"SELECT who FROM waiting WHERE ship = ?1 ORDER BY who","params":["Ann"]}`),
		agenttest.Call("http_request", `{"url":"https://port.example/tell/ada","method":"POST","body":"Ann is at berth 7"}`),
		agenttest.Call("kv_set", `{"key":"told/Ann","value":"ada"}`),
		agenttest.Call("http_get", `{"url":"https://elsewhere.example/"}`),
		agenttest.Text("Told ada."),
	)
	cfg.Model = first
	agenttest.Run(t, cfg, "Announce the ships.").Want(t, "model", "tool kv_get", "model", "tool http_get", "model", "tool sql_query", "model",
		"tool http_request", "model", "tool kv_set", "model", "tool http_get: policy", "model", "completed")
	answer := func(m *agenttest.Model, n int) string {
		said := m.Requests()[n].Messages
		return said[len(said)-1].Content[0].ToolResult.Content[0].Text
	}
	if got, want := answer(first, 3), `{"columns":[{"name":"who","type":"TEXT"}],"rows":[
["ada"],
["bob"]],"truncated":false}`; got != want {
		t.Errorf("the model was told %s", got)
	}
	again := agenttest.Replies(agenttest.Call("kv_get", `{"key":"told/Ann"}`), agenttest.Text("They know."))
	cfg.Model = again
	agenttest.Run(t, cfg, "Announce the ships.").Want(t, "model", "tool kv_get", "model", "completed")
	if got := answer(again, 1); got != "(Revision 1)\nada" {
		t.Errorf("the model was told %s", got)
	}
	if len(told) != 1 {
		t.Errorf("the port was told %q", told)
	}
}
