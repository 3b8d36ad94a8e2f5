//go:build unix

package sql_test

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/deploy/embedded/postgrestest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/sql"
	"github.com/longshore-run/longshore/tools/toolstest"
)

// desk makes calls to the database "db" as a runner does.
type desk struct {
	set    *tools.Set
	specs  []messages.ToolSpec
	grants messages.Grants
	begin  func() error
	log    *bytes.Buffer
}

// kinds are the databases that tests run on, with tables of their own.
type kind struct {
	name string
	exec func(t *testing.T, statements string) // as the owner
	part string                                // of the configuration
	from sql.Sources
	dir  string // of the server's socket
}

const tables = `
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customers(id), note TEXT);
INSERT INTO customers VALUES (1, 'Ann'), (2, 'Bo;b''s -- shop');
INSERT INTO orders VALUES (10, 1, 'first'), (11, 1, NULL), (12, 2, 'third');`

var roles atomic.Int64

// each runs a test on each kind of database.
func each(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "a file%20?.db")
		k := kind{name: "sqlite", part: fmt.Sprintf(`"driver":"sqlite","file":%q`, filepath.Base(file)), from: sql.Sources{Dir: filepath.Dir(file)}}
		k.exec = func(t *testing.T, statements string) {
			t.Helper()
			db, err := stdsql.Open("sqlite", "file:"+strings.NewReplacer("%", "%25", "?", "%3f", " ", "%20").Replace(file))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.ExecContext(t.Context(), statements); err != nil {
				t.Fatal(err)
			}
		}
		k.exec(t, tables)
		test(t, k)
	})
	t.Run("postgres", func(t *testing.T) {
		postgres := postgrestest.Open(t)
		if postgres == nil {
			return
		}
		name, role := postgres.Database(t), fmt.Sprintf("role%d", roles.Add(1))
		k := kind{name: "postgres", dir: postgres.Dir, part: `"driver":"postgres","dsn":"where"`, from: sql.Sources{
			Secret: func(string) (string, error) { return postgres.URL(role, name) + "&password=s3cret-s3cret", nil },
		}}
		k.exec = func(t *testing.T, statements string) { t.Helper(); postgres.Exec(t, name, statements) }
		k.exec(t, tables+fmt.Sprintf("CREATE ROLE %s LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO %s;", role, role))
		test(t, k)
	})
}

// desk opens the tools, with more fields of the configuration.
func (k kind) desk(t *testing.T, more string) *desk {
	t.Helper()
	cfg, err := sql.ParseConfig(fmt.Appendf(nil, `{"databases":{"db":{%s%s}}}`, k.part, more))
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{grants: messages.Grants{Writable: []string{"db"}}, log: new(bytes.Buffer)}
	k.from.Log = slog.New(slog.NewTextHandler(d.log, nil))
	made, err := sql.Tools(cfg, k.from)
	if err != nil {
		t.Fatal(err)
	}
	if d.set, err = tools.NewSet(made...); err != nil {
		t.Fatal(err)
	}
	if d.specs, err = d.set.Specs(d.set.Names()); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) result(ctx context.Context, t *testing.T, tool, args string) tools.Result {
	t.Helper()
	raw, refusal := d.set.Check(messages.ToolCall{Name: tool, Arguments: args}, d.specs)
	if refusal != nil {
		return *refusal
	}
	none := 0
	r, err := d.set.Call(ctx, tool, tools.Call{
		Run: messages.Ref{Tenant: "t", Run: "r"}, Grants: d.grants, Key: "k", Arguments: raw, Begin: d.begin, Retries: &none,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// call returns the text of the result; that of a failure begins with "! ".
func (d *desk) call(t *testing.T, tool, statement string, params ...any) string {
	t.Helper()
	r := d.result(t.Context(), t, tool, args(t, statement, params...))
	if r.IsError {
		return "! " + r.Content[0].Text
	}
	return r.Content[0].Text
}

func args(t *testing.T, statement string, params ...any) string {
	t.Helper()
	in := map[string]any{"database": "db", "sql": statement}
	if params != nil {
		in["params"] = params
	}
	out, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// rows are those of a query.
func (d *desk) rows(t *testing.T, statement string, params ...any) string {
	t.Helper()
	text := d.call(t, "sql_query", statement, params...)
	var got struct {
		Rows []json.RawMessage `json:"rows"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%s: %s", statement, text)
	}
	var out []string
	for _, r := range got.Rows {
		out = append(out, string(r))
	}
	return strings.Join(out, "")
}

func TestConformance(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		cfg, err := sql.ParseConfig(fmt.Appendf(nil, `{"databases":{"db":{%s,"write":true,"timeout":"500ms"}}}`, k.part))
		if err != nil {
			t.Fatal(err)
		}
		made, err := sql.Tools(cfg, k.from)
		if err != nil {
			t.Fatal(err)
		}
		d := k.desk(t, "")
		left := func() (n int) {
			if _, err := fmt.Sscanf(d.rows(t, "SELECT count(*) FROM orders"), "[%d]", &n); err != nil {
				t.Error(err)
			}
			return n
		}
		all := left()
		gone := func() int { return all - left() }
		cases := map[string][]toolstest.Case{
			"sql_schema": {{Arguments: ``}, {Arguments: `{"database":"db"}`}, {Arguments: `{"database":"none"}`, Fails: true}},
			"sql_query": {
				{Arguments: args(t, "SELECT * FROM customers ORDER BY id")}, // not of orders, which sql_execute changes meanwhile
				{Arguments: args(t, "SELEC"), Fails: true},
				{Arguments: args(t, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n"), Fails: true},
			},
			"sql_execute": {
				{Arguments: args(t, "DELETE FROM orders"), Fails: true},
				{Arguments: args(t, "DELETE FROM orders WHERE id = (SELECT min(id) FROM orders)"), Grants: messages.Grants{Writable: []string{"db"}}, Effects: gone},
			},
		}
		for i, tool := range made {
			spec := tool.Spec()
			for n := range cases[spec.Name] {
				cases[spec.Name][n].Restarted = func() (tools.Tool, error) {
					again, err := sql.Tools(cfg, k.from)
					if err != nil {
						return nil, err
					}
					return again[i], nil
				}
			}
			t.Run(spec.Name, func(t *testing.T) {
				t.Parallel()
				toolstest.Run(t, tool, cases[spec.Name]...)
				if spec.SafeByDefault || spec.Destructive != (spec.Name == "sql_execute") {
					t.Errorf("spec %+v", spec)
				}
			})
		}
	})
}

func TestReadAndWrite(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Parallel()
		d := k.desk(t, `,"write":true`)
		one, all := "$1", "$1, $2, $3"
		if k.name == "sqlite" {
			one, all = "?1", "?1, ?2, ?3"
		}
		hostile := "'; DROP TABLE orders; --"
		for _, c := range []struct {
			statement string
			params    []any
			want      string
		}{
			{"SELECT name FROM customers WHERE id = " + one, []any{2}, `["Bo;b's -- shop"]`},
			{"SELECT count(*) FROM customers WHERE name = " + one, []any{hostile}, `[0]`}, // 129
			{"/* a comment */ -- another\n SELECT 1 ; -- the end", nil, `[1]`},
			{"SELECT ';' , 'it''s' -- ; the end", nil, `[";","it's"]`},
			{"VALUES (1), (NULL)", nil, `[1][null]`},
			{"WITH a AS (SELECT note FROM orders WHERE id > 10) SELECT note FROM a ORDER BY note", nil, map[string]string{"sqlite": `[null]["third"]`, "postgres": `["third"][null]`}[k.name]},
		} {
			if got := d.rows(t, c.statement, c.params...); got != c.want {
				t.Errorf("%s: %s, want %s", c.statement, got, c.want)
			}
		}
		for _, c := range []struct {
			statement string
			params    []any
			want      string
		}{
			{"INSERT INTO orders VALUES (" + all + ")", []any{13, 2, hostile}, `{"changed":1}`},
			{"UPDATE orders SET note = " + one, []any{"x"}, `{"changed":4}`},
			{"DELETE FROM orders WHERE id = " + one, []any{99}, `{"changed":0}`},
		} {
			if got := d.call(t, "sql_execute", c.statement, c.params...); got != c.want {
				t.Errorf("%s: %s, want %s", c.statement, got, c.want)
			}
		}
		returned := d.call(t, "sql_execute", "DELETE FROM orders WHERE id >= "+one+" RETURNING id, note", 12)
		if !strings.HasPrefix(returned, `{"changed":2,"columns":[{"name":"id"`) || !strings.Contains(returned, "\n[12,\"x\"],\n[13,\"x\"]]") {
			t.Errorf("returned %s", returned)
		}
		if got := d.rows(t, "SELECT count(*) FROM orders"); got != "[2]" {
			t.Errorf("there are %s orders", got)
		}
	})
}

func TestSchema(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Parallel()
		d := k.desk(t, `,"about":"what customers order"`)
		schema := "customers (table)\n  id INTEGER primary key\n  name TEXT not null\norders (table)\n  id INTEGER primary key\n  customer INTEGER -> customers(id)\n  note TEXT"
		listed := "db (SQLite, read-only): what customers order"
		if k.name == "postgres" {
			schema = strings.NewReplacer("customers (", "public.customers (", "orders (", "public.orders (", "INTEGER", "integer", "TEXT", "text").Replace(schema)
			listed = strings.Replace(listed, "SQLite", "PostgreSQL", 1)
		}
		ask := func(args string) string { return d.result(t.Context(), t, "sql_schema", args).Content[0].Text }
		for in, want := range map[string]string{
			``:                                   listed,
			`{"database":"db"}`:                  schema,
			`{"database":"db","table":"orders"}`: schema[strings.Index(schema, "\n"+strings.TrimSuffix(schema[:strings.Index(schema, "customers")], "\n")+"orders")+1:],
			`{"database":"db","table":"x"}`:      `There is no table "x" that may be read.`,
			`{"database":"other"}`:               `There is no database "other" for this agent. It may use: db.`,
		} {
			if diff := cmp.Diff(want, ask(in)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", in, diff)
			}
		}
		d = k.desk(t, `,"bytes":1024`)
		k.exec(t, "CREATE TABLE wide (a"+strings.Repeat("x", 40)+" TEXT, "+strings.Repeat("b", 50)+" TEXT);")
		for i := range 12 {
			k.exec(t, fmt.Sprintf("CREATE VIEW view%02d AS SELECT note AS %s FROM orders;", i, strings.Repeat("n", 60)))
		}
		if k.name == "postgres" {
			k.exec(t, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC")
		}
		if got := ask(`{"database":"db"}`); !strings.HasSuffix(got, "\n(There is more: ask for a table by its name.)") || len(got) > 1100 {
			t.Errorf("the schema has %d bytes: %s", len(got), got)
		}
	})
}

// The operator's list and the agent's grants both hold.
func TestGrants(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Parallel()
		const change = "DELETE FROM orders"
		writable, plain := k.desk(t, `,"write":true`), k.desk(t, ``)
		if plain.set.Has("sql_execute") {
			t.Error("sql_execute is offered although nothing may be written")
		}
		for name, c := range map[string]struct {
			grants           messages.Grants
			reading, writing string
		}{
			"absent":         {messages.Grants{}, "", `! This agent may not write the database "db": its grants.writable does not name it.`},
			"nothing":        {messages.Grants{Databases: []string{}, Writable: []string{"db"}}, `! There is no database "db" for this agent. It may use: none.`, `! There is no database "db" for this agent. It may use: none.`},
			"another":        {messages.Grants{Databases: []string{"x"}}, `! There is no database "db" for this agent. It may use: none.`, `! There is no database "db" for this agent. It may use: none.`},
			"read":           {messages.Grants{Databases: []string{"db"}, Writable: []string{"x"}}, "", `! This agent may not write the database "db": its grants.writable does not name it.`},
			"read and write": {messages.Grants{Databases: []string{"db"}, Writable: []string{"db"}}, "", `{"changed":3}`},
		} {
			writable.grants = c.grants
			if got := writable.call(t, "sql_execute", change); got != c.writing {
				t.Errorf("%s: %s, want %s", name, got, c.writing)
			}
			if got := writable.call(t, "sql_query", "SELECT 1 AS one"); c.reading == "" && strings.HasPrefix(got, "!") || c.reading != "" && got != c.reading {
				t.Errorf("%s: %s, want %s", name, got, c.reading)
			}
		}
	})
}

// The meta of a failure says what kind it is and of which database.
func TestMetaOfFailures(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Parallel()
		d := k.desk(t, `,"write":true,"changes":1,"timeout":"300ms"`)
		for _, c := range []struct{ tool, args, want string }{
			{"sql_query", args(t, "SELEC 1"), `{"reason":"invalid"}`},
			{"sql_query", args(t, "SELECT nothing FROM nowhere"), `{"database":"db","reason":"statement"}`},
			{"sql_query", args(t, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n"), `{"database":"db","reason":"timeout"}`},
			{"sql_execute", args(t, "DELETE FROM orders"), `{"database":"db","reason":"excess"}`},
			{"sql_query", `{"database":"other","sql":"SELECT 1"}`, `{"reason":"refused"}`},
			{"sql_schema", `{"database":"db","table":"nowhere"}`, `{"database":"db","reason":"missing"}`},
			{"sql_schema", ``, `{"databases":1}`},
		} {
			r := d.result(t.Context(), t, c.tool, c.args)
			got, err := json.Marshal(r.Meta)
			if err != nil || string(got) != c.want {
				t.Errorf("%s %s: meta %s, want %s (%v)", c.tool, c.args, got, c.want, r.Content)
			}
		}
	})
}

// What does not fit is cut and says so, and what would change too much changes nothing.
func TestBounds(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Parallel()
		const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i, 'a row' AS t FROM n"
		d := k.desk(t, `,"rows":3,"bytes":1024,"write":true,"changes":2,"timeout":"2s"`)
		r := d.result(t.Context(), t, "sql_query", args(t, endless))
		if r.IsError || !strings.HasSuffix(r.Content[0].Text, "[3,\"a row\"]],\"truncated\":true}") || fmt.Sprintf("%s %s", r.Meta["rows"], r.Meta["truncated"]) != "3 true" {
			t.Errorf("result %+v", r)
		}
		large := map[string]string{"sqlite": "printf('%.*c', 2000, 'x')", "postgres": "repeat('x', 2000)"}[k.name]
		if got := d.call(t, "sql_query", "SELECT "+large); got != "! The first row alone is larger than the 1024 bytes that a result may have: select fewer columns, or parts of them." {
			t.Error(got)
		}
		huge := map[string]string{"sqlite": "printf('%.*c', 900000000, 'x')", "postgres": "repeat('x', 500000000)"}[k.name]
		if got := d.call(t, "sql_query", "SELECT "+huge); !strings.HasPrefix(got, "! ") {
			t.Error(got)
		}
		if got := d.call(t, "sql_query", "SELECT 1 AS a UNION ALL SELECT length("+huge+")"); k.name == "sqlite" && !strings.Contains(got, "too big") {
			t.Error(got)
		}
		if got := d.call(t, "sql_execute", "DELETE FROM orders"); got != "! The statement was rolled back: it would have changed 3 rows, and at most 2 may be. Nothing was changed." {
			t.Error(got)
		}
		if got := d.rows(t, "SELECT count(*) FROM orders"); got != "[3]" {
			t.Errorf("there are %s orders", got)
		}
		began := time.Now()
		if got := d.call(t, "sql_query", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT max(i) FROM n"); got != "! The statement did not finish within 2s and was stopped. Nothing was changed." {
			t.Error(got)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A run that is another worker's by now changes nothing.
func TestBeginIsAskedBeforeTheCommit(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Parallel()
		d := k.desk(t, `,"write":true`)
		lost := errors.New("the run is another worker's")
		raw := json.RawMessage(args(t, "DELETE FROM orders"))
		_, err := d.set.Call(t.Context(), "sql_execute", tools.Call{Grants: d.grants, Arguments: raw, Begin: func() error { return lost }})
		if !errors.Is(err, lost) {
			t.Errorf("error %v", err)
		}
		if got := d.rows(t, "SELECT count(*) FROM orders"); got != "[3]" {
			t.Errorf("there are %s orders", got)
		}
	})
}

// A cancelled call ends at once, and what it began is not there.
func TestCancel(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Parallel()
		d := k.desk(t, `,"write":true,"timeout":"1m"`)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		raw := json.RawMessage(args(t, "INSERT INTO orders SELECT i, 1, 'x' FROM (WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i+1 FROM n) SELECT max(i) AS i FROM n) AS m"))
		began := make(chan struct{})
		go func() {
			close(began)
			_, err := d.set.Call(ctx, "sql_execute", tools.Call{Grants: d.grants, Arguments: raw})
			done <- err
		}()
		<-began
		timer := time.AfterFunc(200*time.Millisecond, cancel)
		defer timer.Stop()
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the call is still running after it was cancelled")
		}
		if got := d.rows(t, "SELECT count(*) FROM orders"); got != "[3]" {
			t.Errorf("there are %s orders", got)
		}
	})
}

// Calls in parallel keep to the number of connections.
func TestTogether(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Parallel()
		d := k.desk(t, `,"connections":2,"timeout":"30s"`)
		done := make(chan string)
		for range 12 {
			go func() {
				r, err := d.set.Call(t.Context(), "sql_query", tools.Call{Arguments: json.RawMessage(`{"database":"db","sql":"SELECT count(*) FROM orders"}`)})
				if err != nil || r.IsError {
					done <- fmt.Sprint(r, err)
					return
				}
				done <- ""
			}()
		}
		for range 12 {
			if wrong := <-done; wrong != "" {
				t.Error(wrong)
			}
		}
	})
}

func TestValues(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Parallel()
		d := k.desk(t, ``)
		cases := map[string]string{
			"SELECT 9007199254740992, 9007199254740993, -9007199254740993": `[9007199254740992,"9007199254740993","-9007199254740993"]`,
			"SELECT NULL, '', ' <b>&'":                                     `[null,""," <b>&"]`,
		}
		if k.name == "sqlite" {
			maps.Copy(cases, map[string]string{
				"SELECT 0.1, 1e300, 1.0, 9e999, -9e999":    `[0.1,1e+300,1,"Infinity","-Infinity"]`,
				"SELECT x'00ff', x'', CAST(x'ff' AS TEXT)": `[{"base64":"AP8="},{"base64":""},{"base64":"/w=="}]`,
			})
		} else {
			maps.Copy(cases, map[string]string{
				"SELECT true, 1::int2, 2::int8, 0.1::float8, 'NaN'::float8, '-Infinity'::float4":                                       `[true,1,2,0.1,"NaN","-Infinity"]`,
				"SELECT 12345678901234567890.12345678901234567890, 1.50::numeric(5,2), 'NaN'::numeric":                                 `["12345678901234567890.12345678901234567890","1.50","NaN"]`,
				`SELECT '\x00ff'::bytea, ''::bytea`:                                                                                    `[{"base64":"AP8="},{"base64":""}]`,
				"SELECT '2026-11-23 23:15:00.123456+02'::timestamptz, '2026-11-23'::date, 'infinity'::timestamp":                       `["2026-11-23 21:15:00.123456+00","2026-11-23","infinity"]`,
				"SELECT '1 day 2 hours'::interval, '00000000-0000-0000-0000-000000000001'::uuid":                                       `["P1DT2H","00000000-0000-0000-0000-000000000001"]`,
				`SELECT '{"a": 12345678901234567890.10, "b": [1, null]}'::json, '"x"'::jsonb`:                                          `[{"a":12345678901234567890.10,"b":[1,null]},"x"]`,
				`SELECT ARRAY[1,NULL,3], ARRAY[[1,2],[3,4]], '{}'::int[], ARRAY['a,b','"q"','\','NULL',NULL], ARRAY[9007199254740993]`: `[[1,null,3],[[1,2],[3,4]],[],["a,b","\"q\"","\\","NULL",null],["9007199254740993"]]`,
				`SELECT '[0:1]={1,2}'::int[], ARRAY[true,false], ARRAY['\x01'::bytea], ARRAY['{"a":1}'::jsonb]`:                        `["[0:1]={1,2}",[true,false],[{"base64":"AQ=="}],[{"a":1}]]`,
				"SELECT '(1,2),(0,0)'::box, ARRAY['(1,2),(0,0)'::box, NULL]":                                                           `["(1,2),(0,0)","{(1,2),(0,0);NULL}"]`,
				"SELECT int4range(1,5), ROW(1,'a,b')":                                                                                  `["[1,5)","(1,\"a,b\")"]`,
			})
		}
		for q, want := range cases {
			if got := d.rows(t, q); got != want {
				t.Errorf("%s: %s, want %s", q, got, want)
			}
		}
		if k.name == "postgres" {
			big := json.RawMessage("12345678901234567890.5")
			got := d.rows(t, "SELECT $1::numeric, $2::bytea, $3::int8, $4::bool, $5::text, $6::int4 = ANY ($7), $8::text[]",
				big, map[string]string{"base64": "AP8="}, int64(9007199254740993), true, nil, 2, []int{1, 2}, []any{"a\"b\\", nil, 1.5})
			if want := `["12345678901234567890.5",{"base64":"AP8="},"9007199254740993",true,null,true,["a\"b\\",null,"1.5"]]`; got != want {
				t.Errorf("parameters: %s, want %s", got, want)
			}
			return
		}
		k.exec(t, "CREATE TABLE dates (d DATE, t TIMESTAMP, b BOOLEAN); INSERT INTO dates VALUES ('2026-11-23', '2026-11-23 23:15:00', 1), (7, 'soon', 'x')")
		if got, want := d.rows(t, "SELECT *, CAST(d AS TEXT) FROM dates ORDER BY rowid"), `["2026-11-23 00:00:00Z","2026-11-23 23:15:00Z",1,"2026-11-23"][7,"soon","x","7"]`; got != want {
			t.Errorf("dates: %s, want %s", got, want)
		}
		got := d.rows(t, "SELECT ?1, ?2, ?3, ?4, ?5, typeof(?6)", 1.5, map[string]string{"base64": ""}, int64(9007199254740993), true, nil, map[string]string{"base64": "AA=="})
		if want := `[1.5,{"base64":""},"9007199254740993",1,null,"blob"]`; got != want {
			t.Errorf("parameters: %s, want %s", got, want)
		}
	})
}

func TestParametersThatAreWrong(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Parallel()
		d := k.desk(t, ``)
		for params, want := range map[string]string{
			`[{"base64":"?"}]`:                      "params[0]: is not base64",
			`[1,{"bytes":""}]`:                      `params[1]: must be a value, or bytes as {"base64":"…"}`,
			`[{"base64":"","x":1}]`:                 `params[0]: must be a value, or bytes as {"base64":"…"}`,
			`["\u0000"]`:                            `params[0]: holds a NUL character: give bytes as {"base64":"…"}`,
			`[[[1]]]`:                               "params[0]: [0]: must be a text, a number, true, false or null",
			`[1` + strings.Repeat(",1", 1000) + `]`: "params: must not be more than 1000",
			`{"1":1}`:                               `Invalid arguments for sql_query: "params" must be an array, not an object.`,
		} {
			got := d.result(t.Context(), t, "sql_query", `{"database":"db","sql":"SELECT 1","params":`+params+`}`)
			if !got.IsError || got.Content[0].Text != want || got.Code != messages.CodeInvalidInput {
				t.Errorf("%s: %+v, want %s", params, got, want)
			}
		}
		for _, params := range [][]any{{}, {1, 2}} {
			if k.name == "sqlite" && len(params) > 1 {
				continue // it takes those that it needs
			}
			got := d.call(t, "sql_query", map[string]string{"sqlite": "SELECT ?1", "postgres": "SELECT $1::int"}[k.name], params...)
			if !strings.HasPrefix(got, "! ") || !strings.HasSuffix(got, "Nothing was changed.") {
				t.Errorf("%v: %s", params, got)
			}
		}
	})
}

// No error, log line or result holds the address of a database or its password, and a database that is away is no failure of the run.
func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	away, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := away.Addr().String()
	_ = away.Close()
	const secret = "pa55-w0rd-pa55"
	for name, dsn := range map[string]string{
		"away":        "postgres://planted:" + secret + "@" + address + "/db?sslmode=disable",
		"not a URL":   "host=" + address + " password=" + secret,
		"a bad URL":   "postgres://planted:" + secret + "@" + address + ":x:y/db?sslmode=" + secret,
		"a bad field": "postgres://planted:" + secret + "@" + address + "/db?connect_timeout=" + secret,
	} {
		k := kind{part: `"driver":"postgres","dsn":"where"`, from: sql.Sources{Secret: func(string) (string, error) { return dsn, nil }}}
		cfg, err := sql.ParseConfig([]byte(`{"databases":{"db":{` + k.part + `}}}`))
		if err != nil {
			t.Fatal(err)
		}
		var said string
		if _, err := sql.Tools(cfg, k.from); err != nil {
			fe, ok := errors.AsType[*messages.FieldError](err)
			if said = err.Error(); !ok || fe.Field != "databases.db.dsn" {
				t.Errorf("%s: %v", name, err)
			}
		} else {
			d := k.desk(t, ``)
			r := d.result(t.Context(), t, "sql_query", args(t, "SELECT 1"))
			if said = fmt.Sprintf("%+v", r) + d.log.String(); !r.IsError || r.Content[0].Text != `The database "db" does not answer now. Nothing was changed.` || !strings.Contains(d.log.String(), "database=db") {
				t.Errorf("%s: %s", name, said)
			}
		}
		if strings.Contains(said, secret) {
			t.Errorf("%s: the secret is in %s", name, said)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		`{}`: "databases: must name 1 to 64 databases",
		`{"databases":{"a b":{"driver":"sqlite","file":"x"}}}`:                "databases.a b: must be 1 to 64 characters",
		`{"databases":{"a":null}}`:                                            "databases.a: ",
		`{"databases":{"a":{"driver":"mysql"}}}`:                              "databases.a.driver: must be postgres or sqlite",
		`{"databases":{"a":{"driver":"postgres"}}}`:                           "databases.a.dsn: is missing: name the credential that holds the URL of the database",
		`{"databases":{"a":{"driver":"postgres","dsn":"x","file":"y"}}}`:      "databases.a.file: is of sqlite",
		`{"databases":{"a":{"driver":"sqlite"}}}`:                             "databases.a.file: is missing: name the file of the database",
		`{"databases":{"a":{"driver":"sqlite","file":"x","dsn":"y"}}}`:        "databases.a.dsn: is of postgres",
		`{"databases":{"a":{"driver":"sqlite","file":"x","rows":10001}}}`:     "databases.a.rows: must be 1 to 10000",
		`{"databases":{"a":{"driver":"sqlite","file":"x","bytes":1}}}`:        "databases.a.bytes: must be 1024 to 921600",
		`{"databases":{"a":{"driver":"sqlite","file":"x","timeout":"1ms"}}}`:  "databases.a.timeout: must be 100ms to 5m",
		`{"databases":{"a":{"driver":"sqlite","file":"x","connections":-1}}}`: "databases.a.connections: must be 1 to 64",
		`{"databases":{"a":{"driver":"sqlite","file":"x","changes":-1}}}`:     "databases.a.changes: must be 1 to 1000000",
		`{"databases":{"a":{"driver":"sqlite","file":"x","password":"y"}}}`:   "databases.a.password: ",
		`{"databases":{"a":{"driver":"sqlite","file":"x"},"a":{}}}`:           "databases.a: given twice",
	} {
		_, err := sql.ParseConfig([]byte(part))
		fe, ok := errors.AsType[*messages.FieldError](err)
		if !ok || !strings.HasPrefix(fe.Error(), want) {
			t.Errorf("%s: %v, want %s", part, err, want)
		}
	}
	cfg, err := sql.ParseConfig([]byte(`{"databases":{"a":{"driver":"sqlite","file":"none.db"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sql.Tools(cfg, sql.Sources{Dir: t.TempDir()}); err == nil || err.Error() != "databases.a.file: is not a file that can be read: SQLite databases are not created here" {
		t.Errorf("error %v", err)
	}
}
