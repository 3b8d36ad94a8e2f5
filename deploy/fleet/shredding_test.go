//go:build unix

package fleet_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/deploy/embedded/postgrestest"
	"github.com/longshore-run/longshore/deploy/plaintexttest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/erasure"
	"github.com/longshore-run/longshore/observability/audit"
)

// stand is a fleet of processes in which words are planted, and where it keeps them.
type stand struct {
	*town
	words plaintexttest.Words
	env   []string // of all processes

	natsDir, redisDir, memoryDir, indexDir, auditDir string

	auditor     *process
	key, public string // of the audit
}

// newStand starts servers and processes. Memory is what LONGSHORE_MEMORY says, empty for a SQLite file.
func newStand(t *testing.T, encrypt bool, memory string) *stand {
	t.Helper()
	s := &stand{words: plaintexttest.Plant("task", "reply", "file", "value", "result", "memory", "note")}
	s.natsDir, s.redisDir, s.memoryDir, s.indexDir, s.auditDir = t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "audit")
	cfg := embedded.Config{Dir: s.natsDir}
	if encrypt {
		cfg.Key = "a key of the servers"
	}
	servers := embeddedtest.Start(t, cfg)
	s.town = &town{t: t, dir: t.TempDir(), nats: servers.NATSURL, redis: s.startRedis(t, servers.RedisURL), model: newModel(t, s.script)}
	if memory == "" {
		memory = "sqlite:" + filepath.Join(s.memoryDir, "memory.db")
	}
	s.env = []string{"NATS_URL=" + s.nats, "REDIS_URL=" + s.redis, "LONGSHORE_MEMORY=" + memory}
	if encrypt {
		s.keyset = encrypted(t).Keyset
		s.env = append(s.env, "LONGSHORE_ENCRYPTION=required", "LONGSHORE_KEYSET="+s.keyset)
	}
	d := spawn(t, "dispatcher", append(s.env, "LONGSHORE_HTTP_ADDR=127.0.0.1:0", "LONGSHORE_INDEX="+filepath.Join(s.indexDir, "index.db")), binary, "dispatcher")
	d.line(`"message":"ready"`)
	s.connect()
	tools := filepath.Join(t.TempDir(), "tools.yaml")
	if err := os.WriteFile(tools, []byte("apiVersion: longshore.run/v1\nkind: Tools\nspec: {kv: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.worker("worker", append(s.env, "LONGSHORE_TOOLS="+tools, "LONGSHORE_MEMORY=off")...) // one process has the file
	s.key = filepath.Join(t.TempDir(), "key")
	made := call(t, nil, "audit", "key", s.key)
	if made.code != 0 {
		t.Fatalf("%+v", made)
	}
	s.public = strings.TrimSpace(made.stdout)
	s.auditor = spawn(t, "audit", s.env, binary, "audit", "run", "--dir", s.auditDir, "--key", s.key, "--store", audit.Bucket)
	s.auditor.line(`"message":"ready"`)
	return s
}

// startRedis starts the redis-server on the PATH, whose dump shows what it holds, else takes the embedded store, which has no file.
func (s *stand) startRedis(t *testing.T, embedded string) (url string) {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Log("no redis-server on the PATH: its dump was left out")
		return embedded
	}
	port := freePort(t)
	spawn(t, "redis", nil, "sh", "-c", `exec "$0" "$@" >&2`, program, "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--rdbcompression", "no", "--dir", s.redisDir).line("Ready to accept connections")
	return fmt.Sprintf("redis://127.0.0.1:%d/0", port)
}

// hasDump reports whether Redis writes its dump, after which it has.
func (s *stand) hasDump() bool {
	s.t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		return false
	}
	if err := (&store{url: s.redis}).client(s.t).Save(s.t.Context()).Err(); err != nil {
		s.t.Fatal(err)
	}
	return true
}

// script is what the model says: it writes a file, keeps a value, and ends.
func (s *stand) script(c *modelCall) reply {
	switch c.Turn {
	case 0:
		return reply{Text: "I say " + s.words["reply"], Tool: "write_file", Args: map[string]string{"filePath": "a.txt", "content": s.words["file"]}}
	case 1:
		return reply{Tool: "kv_set", Args: map[string]string{"key": "k", "value": s.words["value"]}}
	default:
		return reply{Text: "Done: " + s.words["result"]}
	}
}

// plant has a run worked, an item kept and feedback given, and waits until index and audit have all of it.
func (s *stand) plant() messages.Ref {
	t := s.t
	t.Helper()
	agent := s.apply("metadata: {name: keeper}\nspec: {tools: [write_file, kv_set], temperature: 0, cache: true}\n")
	run := s.submit("Work on "+s.words["task"], func(task *messages.Task) {
		task.Tenant, task.Agent, task.Session, task.Labels = "acme", agent, "talk", map[string]string{"subject": "person-1"}
	})
	run.Tenant = "acme"
	completed(t, s.watch(run).end(), "Done: "+s.words["result"])
	for _, args := range [][]string{
		{"feedback", run.Run, "up", "--note", "Said " + s.words["note"], "--tenant", "acme"},
		{"memory", "put", "facts", "f", "Known is " + s.words["memory"], "--subject", "person-1", "--tenant", "acme"},
	} {
		if got := call(t, s.env, args...); got.code != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
	}
	eventually(t, "the audit has compared the run and read the feedback", func() bool {
		has := s.audited()
		return has[string(audit.KindCompared)] && has["feedback"]
	})
	eventually(t, "the run index has the run", func() bool { return !slices.Contains(s.words.Missing(t, s.indexDir), "result") })
	return run
}

// audited are the kinds of entries and the names of events that the audit has of the tenant.
func (s *stand) audited() map[string]bool {
	s.t.Helper()
	has := map[string]bool{}
	if _, err := audit.Verify(s.t.Context(), audit.VerifyConfig{Dir: s.auditDir, Tenant: "acme", Entry: func(_ string, e *audit.Entry) error {
		has[string(e.Kind)], has[e.Subject[strings.LastIndexByte(e.Subject, '.')+1:]] = true, true
		if strings.Contains(string(e.Body), `"action":"data.erase"`) {
			has["erase"] = true
		}
		return nil
	}}); err != nil {
		s.t.Fatal(err)
	}
	return has
}

// inStreams are the words in what the streams hold, as a user who may read them sees it.
func (s *stand) inStreams() (found []plaintexttest.Found) {
	s.t.Helper()
	js, err := jetstream.New(s.nc)
	if err != nil {
		s.t.Fatal(err)
	}
	for name := range js.StreamNames(s.t.Context()).Name() {
		_, in := s.inStream(js, name)
		found = append(found, in...)
	}
	return found
}

// inStream are the words in a stream, and how many messages it has.
func (s *stand) inStream(js jetstream.JetStream, name string) (messages int, found []plaintexttest.Found) {
	s.t.Helper()
	stream, err := js.Stream(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	state := stream.CachedInfo().State
	for seq := state.FirstSeq; seq > 0 && seq <= state.LastSeq; seq++ {
		m, err := stream.GetMsg(s.t.Context(), seq)
		switch {
		case err == nil:
			messages++
			found = append(found, s.words.InData(m.Subject, m.Data)...)
		case !errors.Is(err, jetstream.ErrMsgNotFound):
			s.t.Fatal(err)
		}
	}
	return messages, found
}

// inCopies ends the auditor, which then copies what is left to copy, and returns the places whose words are in the copies.
func (s *stand) inCopies() (places []string) {
	s.t.Helper()
	s.auditor.signal(syscall.SIGTERM)
	s.auditor.wait()
	js, err := jetstream.New(s.nc)
	if err != nil {
		s.t.Fatal(err)
	}
	messages, found := s.inStream(js, "OBJ_"+audit.Bucket)
	if messages < 2 {
		s.t.Errorf("the auditor copied nothing: OBJ_%s has %d messages", audit.Bucket, messages)
	}
	for _, f := range found {
		places = append(places, f.Place)
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// has fails unless words are in files below a folder.
func (s *stand) has(dir string, places ...string) {
	s.t.Helper()
	missing := s.words.Missing(s.t, dir)
	for _, place := range places {
		if slices.Contains(missing, place) {
			s.t.Errorf("without encryption the word of %s is nowhere below %s: the test looks in the wrong place", place, dir)
		}
	}
}

// lacks fails if any word is in files below folders.
func (s *stand) lacks(when string, dirs ...string) {
	s.t.Helper()
	for _, found := range s.words.In(s.t, dirs...) {
		s.t.Errorf("%s %s", when, found)
	}
}

// everywhere tests a fleet with long-term memory in each place: what LONGSHORE_MEMORY says, and the folder that the place writes to when asked, empty if the
// stand knows it.
func everywhere(t *testing.T, test func(t *testing.T, memory string, postgres func() string)) {
	t.Helper()
	for _, kind := range []string{"sqlite", "redis", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			memory, postgres := map[string]string{"redis": "redis"}[kind], func() string { return "" }
			if kind == "postgres" {
				server := postgrestest.Open(t)
				if server == nil {
					return
				}
				database := server.Database(t)
				memory = server.URL("longshore", database)
				postgres = func() string { return filesOf(t, server, database) }
			}
			test(t, memory, postgres)
		})
	}
}

// What is planted without encryption is found where the tests of encryption and of erasure look.
func TestPlantedWordsAreFound(t *testing.T) {
	everywhere(t, func(t *testing.T, memory string, postgres func() string) {
		t.Helper()
		s := newStand(t, false, memory)
		s.plant()
		s.has(s.natsDir, "task", "reply", "file", "value", "result", "note")
		s.has(s.indexDir, "task", "result")
		s.has(s.auditDir, "task", "reply", "result", "note")
		if places := s.inCopies(); !slices.Equal(places, []string{"file", "note", "reply", "result", "task", "value"}) {
			t.Errorf("without encryption the copies of the audit have the words of %v: the test looks in the wrong place", places)
		}
		switch memory {
		case "":
			s.has(s.memoryDir, "memory")
		case "redis":
			if s.hasDump() {
				s.has(s.redisDir, "value", "reply", "result", "memory")
			}
		default:
			s.has(postgres(), "memory")
		}
	})
}

// With encryption nothing of what runs were told and did can be read in the files of NATS, Redis, long-term memory and the audit, only in the run
// index. After the tenant's data is erased and its key destroyed it is in no file and no stream, and the audit verifies.
func TestShredding(t *testing.T) {
	everywhere(t, func(t *testing.T, memory string, postgres func() string) {
		t.Helper()
		shred(t, newStand(t, true, memory), postgres)
	})
}

// What is erased of a person is in no file and no stream before the key of the tenant is destroyed, but for the audit, which is sealed; and after it
// the audit verifies and opens no more.
func TestShreddingOfASubject(t *testing.T) {
	t.Parallel()
	s := newStand(t, true, "")
	s.plant()
	got := call(t, s.env, "memory", "delete", "--tenant", "acme", "--subject", "person-1", "--yes", "--by", "ann")
	if got.code != 0 || !strings.Contains(got.stdout, "1 run, 1 item of long-term memory, 1 session erased\n") {
		t.Fatalf("delete: %+v", got)
	}
	eventually(t, "the audit knows of the erasure", func() bool {
		has := s.audited()
		return has["erase"] && has[erasure.EventErased]
	})
	eventually(t, "the run index has forgotten the run", func() bool { return len(s.words.In(t, s.indexDir)) == 0 })
	left := func(when string) {
		t.Helper()
		places := []string{s.natsDir, s.memoryDir, s.auditDir, s.indexDir}
		if s.hasDump() {
			places = append(places, s.redisDir)
		}
		s.lacks(when, places...)
		for _, found := range s.inStreams() {
			t.Errorf("%s %s", when, found)
		}
	}
	left("after the subject was erased")
	export := func() string {
		t.Helper()
		got := call(t, s.env, "audit", "export", "--dir", s.auditDir, "--open", "-o", "json")
		if got.code != 0 {
			t.Fatalf("export of the audit: %+v", got)
		}
		return got.stdout
	}
	if len(s.words.InData("the audit", []byte(export()))) == 0 {
		t.Error("with its key the audit does not open: the test looks in the wrong place")
	}
	if got := call(t, s.env, "keys", "destroy", "acme", "--yes"); got.code != 0 {
		t.Fatalf("destroy the key: %+v", got)
	}
	eventually(t, "the audit no longer opens", func() bool { return len(s.words.InData("the audit", []byte(export()))) == 0 })
	left("after the key was destroyed")
	if places := s.inCopies(); len(places) > 0 {
		t.Errorf("the copies of the audit have the words of %v", places)
	}
	if got := call(t, nil, "audit", "verify", "--dir", s.auditDir, "--public-key", s.public); got.code != 0 {
		t.Errorf("verify: %+v", got)
	}
}

// filesOf is the folder with the tables of a database, which has all that was written.
func filesOf(t *testing.T, server *postgrestest.Server, database string) string {
	t.Helper()
	server.Exec(t, database, "CHECKPOINT")
	db, err := sql.Open("pgx", server.URL("longshore", database))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var oid string
	if err := db.QueryRowContext(t.Context(), "SELECT oid::text FROM pg_database WHERE datname = current_database()").Scan(&oid); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(server.Dir, "data", "base", oid)
}

// shred erases what is kept; postgres has what is written to the database of long-term memory in its files, and names their folder, empty if there is
// none.
func shred(t *testing.T, s *stand, postgres func() string) {
	t.Helper()
	run := s.plant()
	sealed := []string{s.natsDir, s.memoryDir, s.auditDir}
	if dir := postgres(); dir != "" {
		sealed = append(sealed, dir)
	}
	if s.hasDump() {
		sealed = append(sealed, s.redisDir)
	}
	s.lacks("before anything was erased", sealed...)
	for _, found := range s.words.In(t, s.indexDir) {
		if found.Place != "task" && found.Place != "result" { // what the page of encryption says that it shows
			t.Errorf("in the run index %s", found)
		}
	}
	if len(s.inStreams()) == 0 {
		t.Error("no stream shows what clients read: the test looks in the wrong place")
	}
	archive := filepath.Join(t.TempDir(), "a.tar.gz")
	if got := call(t, s.env, "memory", "export", "--tenant", "acme", "-o", archive); got.code != 0 || !strings.Contains(got.stderr, "1 run, 1 item") {
		t.Errorf("export: %+v", got)
	}
	if got := call(t, s.env, "memory", "delete", "--tenant", "acme"); got.code != 2 || !strings.Contains(got.stderr, "1 run, 1 item of long-term memory, 1 session, the key of the tenant") {
		t.Errorf("without --yes: %+v", got)
	}
	got := call(t, s.env, "memory", "delete", "--tenant", "acme", "--yes", "--by", "ann")
	if got.code != 0 || !strings.Contains(got.stdout, "1 run, 1 item of long-term memory, 1 session, the key of the tenant erased\n") ||
		!strings.Contains(got.stdout, "removed from Redis") || strings.Contains(got.stdout, "not here") {
		t.Fatalf("delete: %+v", got)
	}
	if got := call(t, s.env, "status", run.Run, "--tenant", "acme"); got.code == 0 {
		t.Errorf("the run: %+v", got)
	}
	if got := call(t, s.env, "keys", "status"); !strings.Contains(got.stdout, "the key of tenant acme was destroyed at ") {
		t.Errorf("keys: %+v", got)
	}
	eventually(t, "the audit knows of the erasure", func() bool {
		has := s.audited()
		return has["erase"] && has[erasure.EventErased]
	})
	eventually(t, "the run index has forgotten the run", func() bool { return len(s.words.In(t, s.indexDir)) == 0 })
	s.hasDump()
	postgres()
	s.lacks("after it was erased", append(sealed, s.indexDir)...)
	for _, found := range s.inStreams() {
		t.Errorf("after it was erased %s", found)
	}
	if keys, err := (&store{url: s.redis}).client(t).Keys(t.Context(), "*acme*").Result(); err != nil || len(keys) > 0 {
		t.Errorf("left in Redis: %v, %v", keys, err)
	}
	if places := s.inCopies(); len(places) > 0 {
		t.Errorf("the copies of the audit have the words of %v", places)
	}
	if got := call(t, nil, "audit", "verify", "--dir", s.auditDir, "--public-key", s.public); got.code != 0 {
		t.Errorf("verify: %+v", got)
	}
	if got := call(t, s.env, "audit", "export", "--dir", s.auditDir, "--open", "-o", "json"); got.code != 0 || len(s.words.InData("the audit", []byte(got.stdout))) > 0 || !strings.Contains(got.stdout, `"sealed"`) {
		t.Errorf("export of the audit: %+v", got)
	}
}
