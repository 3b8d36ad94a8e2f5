//go:build unix

package fleet_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/nats-io/nats.go/micro"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/tools/remote"
)

// After calls of each family, the dispatcher tells of each tool how often it was called, how that ended and how long it took, and the worker
// how much it returned and how often it was tried again.
func TestMetricsOfTools(t *testing.T) {
	t.Parallel()
	var busy atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" && busy.Add(1) == 1 {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path == "/search" {
			_, _ = io.WriteString(rw, `{"results":[{"title":"Cranes","url":"https://harbour.example","content":"How a crane moves a box."}]}`)
			return
		}
		_, _ = io.WriteString(rw, strings.Repeat("x", 10_000)) // more than an event holds
	}))
	t.Cleanup(site.Close)
	s := sdk.NewServer(&sdk.Implementation{Name: "harbour", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "berths", Description: "Counts the free berths."}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "7"}}}, nil, nil
	})
	harbour := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(func() { harbour.CloseClientConnections(); harbour.Close() })
	get := func(url string) wish { return wish{tool: "http_get", args: map[string]any{"url": url}} }
	ask := func(query string) wish {
		return wish{tool: "sql_query", args: map[string]any{"database": "bank", "sql": query}}
	}
	todo := []wish{
		get(site.URL), get(site.URL + "/busy"), get("http://localhost:1/"),
		{tool: "http_get", args: map[string]any{"uri": "x"}},
		{tool: "kv_set", args: map[string]any{"key": "k", "value": "v"}},
		ask("SELECT 1"), ask("SELECT nonsense"),
		{tool: "harbour_berths", args: map[string]any{}},
		{tool: "tide_table", args: map[string]any{"harbour": "Cuxhaven", "day": "2026-11-23"}},
		{tool: "delegate", args: map[string]any{"tasks": []map[string]string{{"agent": "leaf", "input": "leaf"}}}},
		{tool: "write_file", args: map[string]any{"filePath": "log.txt", "content": "left at noon"}},
		{tool: "read_file", args: map[string]any{"filePath": "log.txt"}},
		{tool: "read_file", args: map[string]any{"filePath": "none.txt"}},
		{tool: "web_search", args: map[string]any{"query": "cranes"}},
		{tool: "made_up", args: map[string]any{}},
	}
	w := open(t, shortAckWait, func(c *modelCall) reply {
		if c.Task == "leaf" || c.Turn == len(todo) {
			return reply{Text: "done"}
		}
		return reply{Tool: todo[c.Turn].tool, Args: todo[c.Turn].args}
	})
	definition, err := os.ReadFile("../examples/remote/tide_table.json")
	if err != nil {
		t.Fatal(err)
	}
	program, err := micro.AddService(w.nc, micro.Config{Name: remote.Service, Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Stop() })
	if err := program.AddEndpoint("tide_table", micro.HandlerFunc(func(r micro.Request) { _ = r.RespondJSON(map[string]string{"text": "high"}) }),
		micro.WithEndpointSubject("tools.tide_table"), micro.WithEndpointMetadata(map[string]string{remote.MetadataKey: string(definition)})); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	host := strings.TrimPrefix(site.URL, "http://")
	file := filepath.Join(dir, "tools.yaml")
	for name, data := range map[string][]byte{
		file: fmt.Appendf(nil, `apiVersion: longshore.run/v1
kind: Tools
spec:
  http: {hosts: [%[1]q], plainHttp: [%[1]q]}
  credentials: {searching: {file: key, hosts: [%[1]q]}}
  search: {provider: tavily, credential: searching, endpoint: "http://%[1]s/search"}
  kv: {}
  sql: {databases: {bank: {driver: sqlite, file: bank.db}}}
  mcp: {servers: {harbour: {url: %[2]q}}}
  remote: {tools: [tide_table.json]}
`, host, harbour.URL),
		filepath.Join(dir, "tide_table.json"): definition,
		filepath.Join(dir, "key"):             []byte("s3cret-of-the-search"),
	} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "bank.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE accounts (id INTEGER)"); err != nil {
		t.Fatal(err)
	}
	if got := call(t, []string{"LONGSHORE_TOOLS=" + file}, "tools", "pin"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	def := messages.Definition{
		Name: "busy", Tools: []string{"http_get", "kv_set", "sql_query", "harbour_berths", "tide_table", "delegate", "write_file", "read_file", "web_search"}, MaxSteps: 25,
		Delegate: &messages.Delegate{Agents: []string{"leaf"}},
	}
	def.SetDefaults()
	if _, _, err := catalog.New(w.bus).PutAgent(t.Context(), def); err != nil {
		t.Fatal(err)
	}
	worker := w.worker("a", "LONGSHORE_TOOLS="+file)
	completed(t, w.watch(w.submit("all", func(t *messages.Task) { t.Agent = "busy" })).end(), "done")
	at, _, _ := strings.Cut(strings.TrimPrefix(w.dev.line("longshore is ready: "), "longshore is ready: "), ", ")
	want := map[string]string{
		`{outcome="ok",tool="http_get"}`: "2", `{outcome="policy",tool="http_get"}`: "1", `{outcome="invalid_input",tool="http_get"}`: "1",
		`{outcome="ok",tool="kv_set"}`: "1", `{outcome="ok",tool="sql_query"}`: "1", `{outcome="tool_failed",tool="sql_query"}`: "1",
		`{outcome="ok",tool="harbour_berths"}`: "1", `{outcome="ok",tool="tide_table"}`: "1", `{outcome="ok",tool="delegate"}`: "1",
		`{outcome="ok",tool="write_file"}`: "1", `{outcome="ok",tool="read_file"}`: "1", `{outcome="tool_failed",tool="read_file"}`: "1",
		`{outcome="ok",tool="web_search"}`: "1", `{outcome="invalid_input",tool="other"}`: "1",
	}
	const calls = "longshore_tool_calls_total"
	eventually(t, "the calls are counted", func() bool {
		n := 0
		for name, value := range metricsAt(t, at) {
			if strings.HasPrefix(name, calls) {
				v, _ := strconv.Atoi(value)
				n += v
			}
		}
		return n == len(todo)
	})
	has := metricsAt(t, at)
	got := map[string]string{}
	for name, value := range has {
		if labels, ok := strings.CutPrefix(name, calls); ok {
			got[labels] = value
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls: %s", diff)
	}
	for tool, n := range map[string]string{"http_get": "4", "kv_set": "1", "sql_query": "2", "harbour_berths": "1", "tide_table": "1", "delegate": "1", "write_file": "1", "read_file": "2", "web_search": "1", "other": "1"} {
		if got := has[`longshore_tool_call_seconds_count{tool="`+tool+`"}`]; got != n {
			t.Errorf("%s took its time %q times, want %s", tool, got, n)
		}
	}
	own := metrics(t, worker)
	for tool, least := range map[string]float64{"http_get": 20_000, "kv_set": 10, "sql_query": 10, "harbour_berths": 1, "tide_table": 4, "write_file": 10, "read_file": 20, "web_search": 30} {
		n, err := strconv.ParseFloat(own[`longshore_worker_tool_result_bytes_total{tool="`+tool+`"}`], 64)
		if err != nil || n < least || n > 10*least+1000 {
			t.Errorf("%s returned %v bytes, %v", tool, n, err)
		}
	}
	if n := own[`longshore_worker_tool_retries_total{tool="http_get"}`]; n != "1" {
		t.Errorf("%q retries", n)
	}
	worker.signal(syscall.SIGTERM) // so that its session with the MCP server ends
	if code := worker.wait(); code != 0 {
		t.Errorf("the worker ended with %d", code)
	}
}
