//go:build unix

package sql_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/postgrestest"
	"github.com/longshore-run/longshore/tools/sql"
)

// 128: what a statement tries beyond reading, with sql_query. Each is refused by a text that begins with "! ", or reads; none changes
// anything.
func TestAttack128Reading(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Parallel()
		d := k.desk(t, `,"write":true,"timeout":"1s"`)
		dir := t.TempDir()
		out := filepath.Join(dir, "out")
		both := []string{
			"SELECT 1; DELETE FROM orders",
			"SELECT 1; SELECT 2",
			"SELECT 1 /* ; */; /* x */ DELETE FROM orders",
			"SELECT 1 --\n; DELETE FROM orders",
			"SELECT ';' || \"id\" FROM orders; DELETE FROM orders",
			"-- SELECT\nDELETE FROM orders",
			"/* SELECT */ DELETE FROM orders",
			"/*/ SELECT 1 /*/ DELETE FROM orders",
			"/* a /* b */ DELETE FROM orders",
			"DELETE FROM orders",
			"; SELECT 1",
			"",
			"--",
			"/* SELECT 1",
			"SELECT 1\x00; DELETE FROM orders",
			"WITH gone AS (DELETE FROM orders RETURNING id) SELECT * FROM gone",
			"WITH a AS (SELECT 1) DELETE FROM orders",
			"WITH a AS (SELECT 1) INSERT INTO orders SELECT 99, 1, 'x' FROM a",
			"CREATE TABLE x (a INTEGER)",
			"DROP TABLE orders",
			"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "END",
			"EXPLAIN ANALYZE DELETE FROM orders",
			"SELECT " + strings.Repeat("x", 64<<10),
			"SELECT " + strings.Repeat("(", 20_000) + "1" + strings.Repeat(")", 20_000),
		}
		more := []string{
			"ATTACH '" + out + "' AS x", "DETACH main",
			"VACUUM INTO '" + out + "'", "VACUUM",
			"PRAGMA query_only = 0", "PRAGMA writable_schema = 1", "PRAGMA journal_mode = DELETE",
			"SELECT load_extension('" + out + "')",
			"SELECT writefile('" + out + "', 'x')", "SELECT readfile('/etc/passwd')", "SELECT edit('x')",
			"SELECT fts3_tokenizer('simple')",
			"REINDEX", "ANALYZE",
			"SELECT * FROM pragma_query_only(0)",
			"SELECT group_concat(printf('%.*c', 900000, 'x')) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 10000) SELECT i FROM n)",
			"SELECT hex(zeroblob(900000000))",
			"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n",
			"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n WHERE i < 2", // stands still after a row
			"SELECT instr(hex(zeroblob(8000000)), hex(zeroblob(4000000))||'1')",
		}
		if k.name == "postgres" {
			k.exec(t, "CREATE EXTENSION IF NOT EXISTS dblink; REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC; CREATE SEQUENCE counter; GRANT ALL ON counter TO PUBLIC; GRANT CREATE ON SCHEMA public TO PUBLIC;"+
				"CREATE FUNCTION gone() RETURNS int LANGUAGE sql VOLATILE SECURITY DEFINER AS 'DELETE FROM orders; SELECT 1'; GRANT EXECUTE ON FUNCTION gone() TO PUBLIC;")
			more = []string{
				"COPY orders TO '" + out + "'", "COPY (SELECT 1) TO PROGRAM 'touch " + out + "'", "COPY orders FROM '/etc/passwd'",
				"DO $$ BEGIN DELETE FROM orders; END $$",
				"PREPARE p AS DELETE FROM orders", "EXECUTE p", "DEALLOCATE ALL", "DISCARD ALL",
				"SET default_transaction_read_only = off", "SET TRANSACTION READ WRITE", "RESET ALL", "SET ROLE longshore", "SET SESSION AUTHORIZATION longshore",
				"LOCK TABLE orders", "LISTEN a", "NOTIFY a", "CALL gone()", "TRUNCATE orders", "CREATE TEMP TABLE x (a int)",
				"SELECT * INTO x FROM orders", "SELECT * INTO TEMP x FROM orders", "CREATE TABLE x AS SELECT 1", "EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1",
				"SELECT * FROM orders FOR UPDATE",
				"SELECT pg_sleep(60)", "SELECT pg_sleep(60) FROM orders",
				"SELECT pg_read_file('/etc/passwd')", "SELECT pg_read_binary_file('/etc/passwd')", "SELECT pg_ls_dir('/')", "SELECT pg_stat_file('/etc/passwd')",
				"SELECT lo_import('/etc/passwd')", "SELECT lo_export(1, '" + out + "')",
				"SELECT dblink_exec('host=" + k.dir + " user=longshore', 'DELETE FROM orders')", "SELECT * FROM dblink('host=" + k.dir + "', 'SELECT 1') AS t(a int)",
				"SELECT gone()", "SELECT query_to_xml('DELETE FROM orders', true, true, '')", "SELECT nextval('counter')", "SELECT setval('counter', 9)",
				"WITH off AS MATERIALIZED (SELECT set_config('transaction_read_only', 'off', false)) SELECT gone() FROM off",
				"SELECT set_config('transaction_read_only', 'off', true), gone()",
				"SELECT set_config('role', 'longshore', false)", "SELECT set_config('session_authorization', 'longshore', false)",
				"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'longshore'", "SELECT pg_reload_conf()", "SELECT pg_rotate_logfile()",
				"SELECT rolpassword FROM pg_authid",
				"SELECT 1 \\; SELECT 2", "SELECT E'\\'; DELETE FROM orders; --'; DELETE FROM orders", "SELECT $a$ $a$; DELETE FROM orders",
				"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n",
			}
		}
		for _, q := range append(both, more...) {
			got := d.call(t, "sql_query", q)
			reads := k.name == "sqlite" && (strings.Contains(q, "query_only(0)") || strings.Contains(q, "fts3")) || // which only tell
				strings.HasPrefix(q, "EXPLAIN ANALYZE CREATE") // which PostgreSQL does, in a transaction that is never committed
			if !strings.HasPrefix(got, "! ") && !reads {
				t.Errorf("%.80s: %.200s", q, got)
			}
			if strings.Contains(got, "root:") {
				t.Errorf("%s: a file of the machine was read", q)
			}
		}
		if got := d.rows(t, "SELECT count(*), min(id) FROM orders"); got != "[3,10]" {
			t.Errorf("the orders are %s", got)
		}
		if k.name == "postgres" {
			if got := d.rows(t, "SELECT to_regclass('x'), (SELECT is_called::int FROM counter), (SELECT count(*) FROM pg_largeobject_metadata)"); got != "[null,0,0]" {
				t.Errorf("a table, a number of the sequence or a large object is left: %s", got)
			}
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			t.Errorf("files were made: %v, %v", files, err)
		}
	})
}

// 128: no statement leaves anything behind for the next one: no setting, lock, table or prepared statement.
func TestAttack128NoSessionIsLeft(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Parallel()
		if k.name != "postgres" {
			return
		}
		d := k.desk(t, `,"write":true`)
		for _, q := range []string{
			"SELECT set_config('search_path', 'evil', false), set_config('statement_timeout', '0', false), set_config('application_name', 'mine', false)",
			"SELECT pg_advisory_lock(7)",
		} {
			if got := d.call(t, "sql_query", q); strings.HasPrefix(got, "! ") {
				t.Fatal(got)
			}
		}
		const left = "SELECT current_setting('search_path'), current_setting('application_name'), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
		// The server ends a session, and its locks, a moment after its client has gone.
		deadline, again := time.After(30*time.Second), time.NewTicker(20*time.Millisecond)
		defer again.Stop()
		for {
			got := d.rows(t, left)
			if got == `["\"$user\", public","longshore",0]` {
				return
			}
			select {
			case <-again.C:
			case <-deadline:
				t.Fatalf("left: %s", got)
			}
		}
	})
}

// 128: changes of rows are all that sql_execute does.
func TestAttack128Writing(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Parallel()
		d := k.desk(t, `,"write":true,"timeout":"1s"`)
		dir := t.TempDir()
		out := filepath.Join(dir, "out")
		for _, q := range []string{
			"DELETE FROM orders; DELETE FROM customers", "DROP TABLE orders", "CREATE TABLE x (a INTEGER)", "ALTER TABLE orders ADD COLUMN a INTEGER",
			"SELECT 1", "COMMIT", "BEGIN", "ROLLBACK", "DO $$ BEGIN END $$", "COPY orders FROM PROGRAM 'touch " + out + "'", "ATTACH '" + out + "' AS x",
			"VACUUM INTO '" + out + "'", "PRAGMA writable_schema = 1", "GRANT ALL ON orders TO PUBLIC", "TRUNCATE orders", "SET ROLE longshore",
			"UPDATE sqlite_schema SET sql = 'x'", "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 0, 'CREATE TABLE x (a)')",
			"UPDATE pg_catalog.pg_class SET relname = 'x'",
			"DELETE FROM orders WHERE id = 10; -- \n COMMIT; DELETE FROM customers",
			"INSERT INTO orders SELECT i, 1, 'x' FROM (WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i+1 FROM n) SELECT i FROM n) AS m",
			"INSERT INTO orders VALUES (10, 1, 'again')",
		} {
			if got := d.call(t, "sql_execute", q); !strings.HasPrefix(got, "! ") {
				t.Errorf("%s: %s", q, got)
			}
		}
		if got := d.rows(t, "SELECT count(*), min(id) FROM orders"); got != "[3,10]" {
			t.Errorf("the orders are %s", got)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			t.Errorf("files were made: %v, %v", files, err)
		}
	})
}

// 128: rows count that a statement changes on its way: in a WITH, by a foreign key, by a trigger.
func TestAttack128MoreChangesThanTheStatementSays(t *testing.T) {
	each(t, func(t *testing.T, k kind) {
		t.Parallel()
		k.exec(t, "CREATE TABLE parts (id INTEGER PRIMARY KEY, whole INTEGER REFERENCES parts(id) ON DELETE CASCADE); INSERT INTO parts VALUES (1, NULL), (2, 1), (3, 1);")
		trigger := "CREATE TRIGGER more AFTER UPDATE ON customers BEGIN UPDATE orders SET note = 'x'; END;"
		statements := []string{"DELETE FROM parts WHERE id = 1", "UPDATE customers SET name = 'x' WHERE id = 1"}
		if k.name == "postgres" {
			k.exec(t, "GRANT SELECT, DELETE ON parts TO PUBLIC")
			trigger = "CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE orders SET note = ''x''; RETURN NULL; END';" +
				"CREATE TRIGGER more AFTER UPDATE ON customers FOR EACH ROW EXECUTE FUNCTION more();"
			statements = append(statements, "WITH gone AS (DELETE FROM orders RETURNING id) SELECT count(*) FROM gone",
				"WITH gone AS (DELETE FROM orders RETURNING id) INSERT INTO customers SELECT count(*) + 50, 'x' FROM gone",
				"INSERT INTO customers WITH gone AS (DELETE FROM orders RETURNING id) SELECT count(*) + 50, 'x' FROM gone")
		}
		k.exec(t, trigger)
		d := k.desk(t, `,"write":true,"changes":2`)
		for _, q := range statements {
			if got := d.call(t, "sql_execute", q); !strings.HasPrefix(got, "! ") || !strings.HasSuffix(got, "Nothing was changed.") {
				t.Errorf("%s: %s", q, got)
			}
		}
		if got := d.rows(t, "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM parts), (SELECT count(*) FROM customers), (SELECT max(name) FROM customers WHERE id = 1)"); got != `[3,3,2,"Ann"]` {
			t.Errorf("left: %s", got)
		}
		if k.name != "postgres" {
			return
		}
		if got := k.desk(t, `,"write":true,"changes":3`).call(t, "sql_execute", statements[2]); !strings.HasPrefix(got, `{"changed":3,`) {
			t.Error(got)
		}
	})
}

// 128: a role that reaches beyond the database is not used at all.
func TestAttack128RolesThatReachFurther(t *testing.T) {
	postgres := postgrestest.Open(t)
	if postgres == nil {
		return
	}
	for name, c := range map[string]struct{ setup, want string }{
		"superuser":    {"ALTER ROLE %s SUPERUSER", `The database "db" is not used: its role is, or may become, `},
		"member":       {"GRANT longshore TO %s", `The database "db" is not used: its role is, or may become, longshore, which can reach files and programs of the server: give it a role of its own.`},
		"server files": {"GRANT pg_read_server_files TO %s", `The database "db" is not used: its role is, or may become, pg_read_server_files, which`},
		"programs":     {"GRANT pg_execute_server_program TO %s", `The database "db" is not used: its role is, or may become, pg_execute_server_program, which`},
		"dblink":       {"CREATE EXTENSION dblink; -- %s", `The database "db" is not used: its role may call dblink, which reaches other servers: revoke EXECUTE on the functions of dblink from PUBLIC`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, role := postgres.Database(t), fmt.Sprintf("role%d", roles.Add(1))
			postgres.Exec(t, db, "CREATE ROLE "+role+" LOGIN")
			postgres.Exec(t, db, fmt.Sprintf(c.setup, role))
			k := kind{part: `"driver":"postgres","dsn":"where"`, from: sql.Sources{Secret: func(string) (string, error) { return postgres.URL(role, db), nil }}}
			if got := k.desk(t, ``).call(t, "sql_query", "SELECT 1"); !strings.HasPrefix(got, "! "+c.want) {
				t.Error(got)
			}
		})
	}
}
