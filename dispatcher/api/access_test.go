package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/api"
	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/dispatcher/auth/apikey"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	busevents "github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// guarded is a hall that asks for keys.
type guarded struct {
	*hall
	client *dispatcher.Client
	log    *logged
}

// logged is what a process writes to its log.
type logged struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.String()
}

func openGuarded(t *testing.T) *guarded {
	t.Helper()
	play, err := scripted.Parse([]byte(`
scenes:
  - match: write
    turns:
      - {text: I write., calls: [{name: write_file, arguments: {filePath: a.txt, content: hi}}]}
      - {text: done}
  - match: wait
    turns: [{delay: 1h, text: never}]
  - match: ""
    turns: [{text: hello}]
`))
	if err != nil {
		t.Fatal(err)
	}
	out := &logged{}
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 8, MaxAttempts: 5}, Serving: settings.Serving{Access: settings.Access{Auth: settings.AuthOn}}}, Abrupt: true, Version: "0.0.0", Agents: "testdata/agents",
		Log:   slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Parts: fleet.Parts{Model: model.Provider(scripted.New(play))},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &guarded{&hall{t, dev, "http://" + dev.API}, client, out}
}

// key makes a key and returns the header that shows it.
func (g *guarded) key(tenant string, roles ...control.AccessRole) []string {
	g.t.Helper()
	key, _, err := g.client.Keys().Create(g.t.Context(), dispatcher.KeySpec{Tenant: tenant, Roles: roles, Name: "of " + tenant})
	if err != nil {
		g.t.Fatal(err)
	}
	return []string{"Authorization", "Bearer " + key}
}

// denials polls until so many denials of a tenant fit.
func (g *guarded) denials(tenant string, n int, fits func(control.AuthDenied) bool) {
	g.t.Helper()
	found := 0
	var seen []control.AuthDenied
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		found, seen = 0, nil
		for e, err := range g.client.Runs().Recent(g.t.Context(), tenant, time.Now().Add(-time.Hour)) {
			if err != nil {
				g.t.Fatal(err)
			}
			if e.Name() != control.EventAuthDenied {
				continue
			}
			var d control.AuthDenied
			if err := json.Unmarshal(e.Data, &d); err != nil {
				g.t.Fatal(err)
			}
			seen = append(seen, d)
			if fits(d) {
				found++
			}
		}
		if found >= n {
			return
		}
	}
	g.t.Errorf("%d denials of %s fit, want %d: %+v", found, tenant, n, seen)
}

func TestEveryOperationSaysWhatItNeeds(t *testing.T) {
	for _, op := range api.Operations() {
		if !slices.Contains(control.Permissions(), op.Needs) {
			t.Errorf("%s %s (%s) needs the permission %q: give its row one of %v", op.Method, op.Path, op.ID, op.Needs, control.Permissions())
		}
		if op.Method == http.MethodGet && op.Needs != control.Read && op.Needs != control.ReadFleet && op.Needs != control.Administer && op.Needs != control.ManageKeys && op.Needs != control.ManageData {
			t.Errorf("%s only reads, and needs %s", op.ID, op.Needs)
		}
	}
}

// Each operation of the real API is open to exactly the roles of its permission.
func TestRolesAndOperations(t *testing.T) {
	g := openGuarded(t)
	paths := strings.NewReplacer("{id}", "none", "{name}", "none", "{workspace}", "none", "{revision}", "1")
	type holder struct {
		tenant string
		role   control.AccessRole
		header []string
	}
	var all []holder
	for _, role := range control.AccessRoles() {
		if role != control.RoleAuthor && role != control.RoleGranter { // of all tenants only
			all = append(all, holder{"acme", role, g.key("acme", role)})
		}
	}
	for _, role := range []control.AccessRole{control.RoleViewer, control.RoleOperator, control.RoleAuthor, control.RoleGranter, control.RoleAdmin} {
		all = append(all, holder{control.AllTenants, role, g.key(control.AllTenants, role)})
	}
	for _, op := range api.Operations() {
		path := paths.Replace(op.Path)
		resp := g.send(op.Method, path, "")
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s without a key: %s, WWW-Authenticate %q", op.ID, resp.Status, resp.Header.Get("WWW-Authenticate"))
		}
		for _, who := range all {
			p := auth.Principal{Tenant: who.tenant, Roles: []control.AccessRole{who.role}}
			resp := g.send(op.Method, path, "", who.header...)
			_ = resp.Body.Close()
			refused := resp.StatusCode == http.StatusForbidden
			if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode >= 500 || refused == p.May(op.Needs) {
				t.Errorf("%s as %s of %s: %s", op.ID, who.role, who.tenant, resp.Status)
			}
		}
	}
	for path, open := range map[string]bool{"/healthz": true, "/readyz": true, "/openapi.json": true, "/metrics": false} {
		resp := g.send("GET", path, "")
		_ = resp.Body.Close()
		if (resp.StatusCode == http.StatusOK) != open {
			t.Errorf("%s without a key: %s", path, resp.Status)
		}
	}
	g.do("GET", "/metrics", "", http.StatusForbidden, nil, all[0].header...) // a viewer of one tenant
	g.do("GET", "/metrics", "", http.StatusOK, nil, all[5].header...)        // and of all
}

// What belongs to another tenant is not there; to name one is refused. Both are so whether there is something or not.
func TestAnotherTenant(t *testing.T) {
	g := openGuarded(t)
	acme, other := g.key("acme", control.RoleSubmitter), g.key("other", control.RoleSubmitter)
	fleetwide := g.key(control.AllTenants, control.RoleOperator)
	var sub struct{ Tenant string }
	g.do("POST", "/v1/tasks?wait=30s", `{"id":"r","input":"hi"}`, http.StatusOK, &sub, acme...)
	if sub.Tenant != "acme" {
		t.Errorf("the tenant is %q", sub.Tenant)
	}
	with := func(header []string, more ...string) []string { return append(slices.Clone(header), more...) }
	for name, tc := range map[string]struct {
		method, path, body string
		header             []string
		status             int
	}{
		"its own":                       {"GET", "/v1/tasks/r", "", acme, 200},
		"its own by name":               {"GET", "/v1/tasks/r", "", with(acme, "Longshore-Tenant", "acme"), 200},
		"another's run":                 {"GET", "/v1/tasks/r", "", other, 404},
		"another's log":                 {"GET", "/v1/tasks/r/log", "", other, 404},
		"a viewer checks":               {"GET", "/v1/tasks/r/check", "", g.key("acme", control.RoleViewer), 200},
		"check another's":               {"GET", "/v1/tasks/r/check", "", other, 404},
		"check without a key":           {"GET", "/v1/tasks/r/check", "", nil, 401},
		"another's events":              {"GET", "/v1/tasks/r/events", "", other, 404},
		"cancel another's":              {"POST", "/v1/tasks/r/cancel", "", other, 404},
		"fork another's":                {"POST", "/v1/tasks/r/fork", `{"at":1}`, other, 404},
		"another's run by name":         {"GET", "/v1/tasks/r", "", with(other, "Longshore-Tenant", "acme"), 403},
		"no run by another's name":      {"GET", "/v1/tasks/none", "", with(other, "Longshore-Tenant", "acme"), 403},
		"a task of another":             {"POST", "/v1/tasks", `{"input":"x","tenant":"acme"}`, other, 403},
		"a task of the default tenant":  {"POST", "/v1/tasks", `{"input":"x","tenant":"default"}`, other, 403},
		"all tenants":                   {"GET", "/v1/tasks/r", "", with(fleetwide, "Longshore-Tenant", "acme"), 200},
		"all tenants, without a name":   {"GET", "/v1/tasks/r", "", fleetwide, 404},
		"a tenant called *":             {"GET", "/v1/tasks/r", "", with(fleetwide, "Longshore-Tenant", "*"), 400},
		"all tenants, a task of acme":   {"POST", "/v1/tasks", `{"input":"x","tenant":"acme"}`, fleetwide, 202},
		"all tenants, two that differ":  {"POST", "/v1/tasks", `{"input":"x","tenant":"acme"}`, with(fleetwide, "Longshore-Tenant", "other"), 403},
		"a batch line of another":       {"POST", "/v1/batches?id=b1", `{"custom_id":"1","input":"x","tenant":"acme"}`, other, 200},
		"the agents are everybody's":    {"GET", "/v1/agents", "", other, 200},
		"an admin of one is none of us": {"PUT", "/v1/agents/x", `{}`, g.key("acme", control.RoleAdmin), 403},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hall{t, g.dev, g.url}
			h.do(tc.method, tc.path, tc.body, tc.status, nil, tc.header...)
		})
	}
	var list struct{ Runs []control.RunSummary }
	g.do("GET", "/v1/tasks", "", http.StatusOK, &list, other...)
	if len(list.Runs) != 0 {
		t.Errorf("another tenant lists %+v", list.Runs)
	}
	g.denials("other", 3, func(d control.AuthDenied) bool {
		return d.Code == messages.CodeForbidden && strings.HasPrefix(d.Who, "key:") && strings.HasSuffix(d.Who, "(of other)") && d.Operation != "" && d.Remote == "127.0.0.1"
	})
}

// The decision is recorded as the caller's, whatever the request says.
func TestWhoDecidesIsWhoAsks(t *testing.T) {
	g := openGuarded(t)
	submitter, approver := g.key("acme", control.RoleSubmitter), g.key("acme", control.RoleApprover)
	admin := g.key(control.AllTenants, control.RoleAdmin)
	id := func(header []string) string { return strings.Split(header[1], "_")[1] }
	g.do("POST", "/v1/tasks", `{"id":"w","agent":"careful","input":"write it"}`, http.StatusAccepted, nil, submitter...)
	g.do("POST", "/v1/tasks", `{"id":"c","input":"wait"}`, http.StatusAccepted, nil, submitter...)
	var list control.ApprovalList
	for deadline := time.Now().Add(patience); len(list.Approvals) == 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		g.do("GET", "/v1/approvals", "", http.StatusOK, &list, approver...)
	}
	if len(list.Approvals) != 1 {
		t.Fatalf("waits: %+v", list)
	}
	verdict := `{"call":"` + list.Approvals[0].Call + `","decision":"approve","by":"the boss"}`
	g.do("POST", "/v1/tasks/w/approvals", verdict, http.StatusForbidden, nil, submitter...)
	g.do("POST", "/v1/tasks/w/approvals", verdict, http.StatusOK, nil, approver...)
	g.do("POST", "/v1/tasks/c/cancel", "", http.StatusOK, nil, submitter...)
	for run, want := range map[string]struct{ event, by string }{
		"w": {messages.EventApprovalDecided, id(approver)}, "c": {messages.EventCancelRequested, id(submitter)},
	} {
		resp := g.send("GET", "/v1/tasks/"+run+"/events?types="+want.event, "", submitter...)
		var data []string
		for e := range events(resp.Body) {
			data = append(data, e.data)
		}
		found := strings.Join(data, "\n")
		_ = resp.Body.Close()
		if !strings.Contains(found, `"by":"key:`+want.by) || strings.Contains(found, "the boss") {
			t.Errorf("run %s: %s", run, found)
		}
	}
	g.do("PUT", "/v1/prompts/p", `{"text":"hi","author":"the boss"}`, http.StatusOK, nil, append(admin, "Longshore-By", "the boss")...)
	var history control.History
	g.do("GET", "/v1/prompts/p/versions", "", http.StatusOK, &history, admin...)
	if len(history.Changes) != 1 || !strings.HasPrefix(history.Changes[0].By, "key:"+id(admin)) {
		t.Errorf("changed by %+v", history.Changes)
	}
}

// A key that is revoked is refused, and its streams end.
func TestRevokedKey(t *testing.T) {
	g := openGuarded(t)
	var ahead atomic.Int64 // of the clock by which keys are read again
	g.url = g.another(20*time.Millisecond, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	header := g.key("acme", control.RoleSubmitter)
	id := strings.Split(header[1], "_")[1]
	g.do("POST", "/v1/tasks", `{"id":"r","input":"wait"}`, http.StatusAccepted, nil, header...)
	resp := g.send("GET", "/v1/tasks/r/events", "", header...)
	defer func() { _ = resp.Body.Close() }()
	ended := make(chan string, 1)
	go func() {
		last := ""
		for e := range events(resp.Body) {
			last = e.name
		}
		ended <- last
	}()
	if _, err := g.client.Keys().Revoke(t.Context(), id, "ann"); err != nil {
		t.Fatal(err)
	}
	ahead.Store(int64(10 * time.Second))
	select {
	case last := <-ended:
		if last == messages.EventRunFinished {
			t.Error("the run has ended, not the stream")
		}
	case <-time.After(patience):
		t.Fatal("the stream is still open")
	}
	g.do("GET", "/v1/tasks/r", "", http.StatusUnauthorized, nil, header...)
	if _, err := g.client.Keys().Revoke(t.Context(), id, "ann"); err != nil {
		t.Errorf("revoked twice: %v", err)
	}
	if _, err := g.client.Keys().Revoke(t.Context(), "aaaaaaaaaaaa", "ann"); !errors.Is(err, dispatcher.ErrNoKey) {
		t.Errorf("a key that never was is revoked: %v", err)
	}
	list, err := g.client.Keys().List(t.Context(), "")
	if err != nil || len(list.Keys) != 0 {
		t.Errorf("left: %+v, %v", list, err)
	}
}

// another serves the API of the same fleet, with an access of its own, and returns its address.
func (g *guarded) another(recheck time.Duration, clock func() time.Time) string {
	g.t.Helper()
	nc, err := nats.Connect(g.dev.NATS)
	if err != nil {
		g.t.Fatal(err)
	}
	b, err := bus.Open(g.t.Context(), nc, bus.Config{})
	if err != nil {
		g.t.Fatal(err)
	}
	access := &api.Access{Authenticator: auth.Any{Keys: apikey.New(catalog.New(b), clock)}, Recheck: recheck}
	hub := busevents.New(b).NewHub()
	logs := runlogs.New(b, runlogs.Config{})
	front := api.New(api.Config{Client: g.client, Hub: hub, Runs: logs, Access: access})
	ctx, stop := context.WithCancel(context.WithoutCancel(g.t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = hub.Run(ctx) })
	server := httptest.NewServer(front)
	g.t.Cleanup(func() {
		front.Drain()
		server.Close()
		stop()
		running.Wait()
		nc.Close()
	})
	return server.URL
}

// Wrong tokens are refused, then slowed down, and reported; what is known continues meanwhile. No key is in the log.
func TestWrongTokens(t *testing.T) {
	g := openGuarded(t)
	good := g.key("acme", control.RoleViewer)
	g.do("GET", "/v1/tasks", "", http.StatusOK, nil, good...)
	key := strings.TrimPrefix(good[1], "Bearer ")
	var p messages.Problem
	for name, value := range map[string]string{
		"another scheme": "Basic " + key, "no token": "Bearer", "two": good[1] + ", " + good[1], "another end": good[1] + "x",
		"a cut one": good[1][:len(good[1])-1], "no key": "Bearer lsk_aaaaaaaaaaaa_bbbbbbbbbbbb", "hostile": "Bearer lsk_../_>*",
		"a JWT": "Bearer a.b.c", "a long one": "Bearer " + strings.Repeat("x", 9000),
	} {
		t.Run(name, func(t *testing.T) {
			h := &hall{t, g.dev, g.url}
			h.do("GET", "/v1/tasks", "", http.StatusUnauthorized, &p, "Authorization", value)
			if p.Code != messages.CodeUnauthenticated || strings.Contains(p.Detail, key) {
				t.Errorf("%+v", p)
			}
		})
	}
	g.do("GET", "/v1/tasks?key="+key, "", http.StatusUnauthorized, nil)
	slowed := false
	for range 100 {
		resp := g.send("GET", "/v1/tasks", "", "Authorization", good[1]+"y")
		_ = resp.Body.Close()
		if slowed = resp.StatusCode == http.StatusTooManyRequests; slowed {
			if resp.Header.Get("Retry-After") == "" {
				t.Error("it does not say when to come again")
			}
			break
		}
	}
	if !slowed {
		t.Error("wrong tokens are not slowed down")
	}
	g.do("GET", "/v1/tasks", "", http.StatusOK, nil, good...)
	g.denials(messages.DefaultTenant, 1, func(d control.AuthDenied) bool {
		return d.Code == messages.CodeUnauthenticated && d.Operation == "listTasks"
	})
	secret := key[strings.LastIndex(key, "_")+1:]
	if log := g.log.text(); strings.Contains(log, secret) || !strings.Contains(log, "access denied") {
		t.Error("the log has the key, or no denial")
	}
	for e, err := range g.client.Runs().Recent(t.Context(), messages.DefaultTenant, time.Now().Add(-time.Hour)) {
		if err != nil || bytes.Contains(e.Data, []byte(secret)) {
			t.Errorf("an event has the key: %v %s", err, e.Data)
		}
	}
}

// The page on access has the table of operations that the API has.
func TestAccessPage(t *testing.T) {
	const page, from, to = "../../docs/auth.md", "<!-- operations -->\n", "<!-- end of operations -->"
	matrix := roleMatrix(api.Operations())
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), from)
	table, tail, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatal("the page has no place for the table")
	}
	if *update {
		if err := os.WriteFile(page, []byte(head+from+matrix+to+tail), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != matrix {
		t.Errorf("the table of the page is another: run go test ./dispatcher/api -run AccessPage -update\n%s", matrix)
	}
}

// roleMatrix is a table of who may ask for which operations.
func roleMatrix(all []api.Operation) string {
	var b strings.Builder
	b.WriteString("| Permission | Roles | Operations |\n|---|---|---|\n")
	for _, p := range control.Permissions() {
		var roles, ops []string
		for _, r := range p.Roles() {
			roles = append(roles, string(r))
		}
		for _, op := range all {
			if op.Needs == p {
				ops = append(ops, "`"+op.ID+"`")
			}
		}
		if p == control.ReadFleet {
			ops = append(ops, "`/metrics`")
		}
		where := ""
		if p.FleetWide() {
			where = ", for all tenants"
		}
		b.WriteString(strings.TrimRight("| `"+string(p)+"` | "+strings.Join(roles, ", ")+where+" | "+strings.Join(ops, ", "), " ") + " |\n")
	}
	return b.String()
}
