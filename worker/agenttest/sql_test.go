package agenttest_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/longshore-run/longshore/messages"
	tool "github.com/longshore-run/longshore/tools/sql"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
)

// An agent with the tools of package sql is tested without a server: a file of SQLite is its database.
func TestAgentThatAsksADatabase(t *testing.T) {
	dir := t.TempDir()
	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id INTEGER PRIMARY KEY, open INTEGER); INSERT INTO orders VALUES (1, 1), (2, 0)"); err != nil {
		t.Fatal(err)
	}
	asking, err := tool.Tools(tool.Config{Databases: map[string]*tool.Database{"shop": {Driver: tool.SQLite, File: "shop.db", Write: true}}}, tool.Sources{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	agent := messages.Definition{
		Name: "clerk", Tools: []string{"sql_query", "sql_execute"}, MaxSteps: 10, Grants: &messages.Grants{Writable: []string{"shop"}},
		Approve: &messages.Approve{Never: []string{"sql_execute"}},
	}
	agenttest.Run(t, agenttest.Config{Config: embed.Config{Agent: agent, Tools: asking, Model: agenttest.Replies(
		agenttest.Call("sql_query", `{"database":"shop","sql":"SELECT id FROM orders WHERE open"}`),
		agenttest.Call("sql_execute", `{"database":"shop","sql":"UPDATE orders SET open = 0 WHERE id = ?1","params":[1]}`),
		agenttest.Text("Done."),
	)}}, "Close what is open.").Want(t, "model", "tool sql_query", "model", "tool sql_execute", "model", "completed")
	var open int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM orders WHERE open").Scan(&open); err != nil || open != 0 {
		t.Errorf("%d orders are open, %v", open, err)
	}
}
