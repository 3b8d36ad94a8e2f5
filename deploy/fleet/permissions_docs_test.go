//go:build unix

package fleet_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// The table of permissions in docs/operations.md is what deploy/nats says, as the server reads it. UPDATE_DOCS=1 writes
// it anew.
func TestPermissionsTable(t *testing.T) {
	opts, err := server.ProcessConfigFile(guardedConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range opts.Users { // what is of a tenant is in the account of its name
		tenant, _, ofTenant := strings.Cut(u.Username, "-")
		if want := map[bool]string{true: tenant, false: "LONGSHORE"}[ofTenant]; u.Account == nil || u.Account.Name != want {
			t.Fatalf("user %s is not in account %s", u.Username, want)
		}
	}
	slices.SortStableFunc(opts.Users, func(a, b *server.User) int { // the server reads accounts in any order; the fleet's is first
		return strings.Compare(a.Account.Name, b.Account.Name)
	})
	var table strings.Builder
	table.WriteString("| User | May publish | May subscribe |\n|---|---|---|\n")
	for _, u := range opts.Users {
		if strings.HasPrefix(u.Username, "harbour-") {
			continue
		}
		if u.Permissions == nil || u.Permissions.Publish == nil || u.Permissions.Subscribe == nil {
			t.Fatalf("user %s may do anything", u.Username)
		}
		may := cells(u.Permissions.Publish.Allow)
		if u.Permissions.Response != nil {
			may += ", and replies"
		}
		table.WriteString("| `" + u.Username + "` | " + may + " | " + cells(u.Permissions.Subscribe.Allow) + " |\n")
	}
	const begin, end = "<!-- permissions: generated from deploy/nats -->\n", "<!-- end of permissions -->\n"
	path := filepath.Join("..", "..", "docs", "operations.md")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	has, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", path)
	}
	want := "\n" + table.String() + "\n"
	switch {
	case has == want:
	case os.Getenv("UPDATE_DOCS") != "":
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table in %s is not what deploy/nats says; UPDATE_DOCS=1 go test ./deploy/fleet -run PermissionsTable writes it", path)
	}
}

func cells(subjects []string) string { return "`" + strings.Join(subjects, "`, `") + "`" }
