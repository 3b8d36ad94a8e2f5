package memory_test

import (
	"bytes"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	command "github.com/longshore-run/longshore/deploy/command/memory"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/memory"
)

// documentsOf are the names of the documents of a collection, and the ids of the items that are of none.
func documentsOf(t *testing.T, connect conn.Connect, collection string) []string {
	t.Helper()
	names := map[string]bool{}
	_, items := kept(t, connect, collection)
	for _, it := range items {
		name := it.Source.Document
		if !strings.HasPrefix(it.ID, "doc-") {
			name = it.ID
		}
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// With --prune an import removes the documents that a folder no longer has, after a question that names them, and no other item.
func TestPrune(t *testing.T) {
	t.Chdir(t.TempDir())
	d := dev(t)
	web := over("http://" + d.API)
	client, done, err := web(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	write(t, map[string]string{
		"docs/a.md": "# A\n\nText.\n\n## B\n\nMore.\n", "docs/b.md": "B.", "docs/deep/c.md": "C.", "docs/draft.md": "Draft.", "docs2/e.md": "E.", "notes.md": "Notes.",
	})
	if _, errs, err := imported(t.Context(), web, "Piped.", "docs", "docs2", "notes.md", "-", "--name", "docs/piped.md", "--collection", "c"); err != nil {
		t.Fatal(err, errs)
	}
	own := memory.Item{ID: "own", Text: "Kept by hand.", Source: memory.Source{Document: "docs/by-hand.md"}}
	for _, collection := range []string{"c", "other"} {
		if _, err := client.Memory().Put(t.Context(), memory.PutRequest{Name: collection, Items: []memory.Item{own}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, errs, err := imported(t.Context(), web, "", "docs", "--collection", "other"); err != nil {
		t.Fatal(err, errs)
	}
	before := documentsOf(t, web, "c")
	for _, name := range []string{"docs/a.md", "docs/deep/c.md"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	write(t, map[string]string{"docs/.gitignore": "draft.md\n", "docs/new.md": "New."})

	unchanged := func(step string) {
		t.Helper()
		if diff := cmp.Diff(before, documentsOf(t, web, "c")); diff != "" {
			t.Errorf("%s: %s", step, diff)
		}
	}
	args := []string{"docs", "--collection", "c", "--prune"}
	out, errs, err := imported(t.Context(), web, "", append(args, "--dry-run")...)
	const would = "docs/a.md: gone, 2 parts would be removed\ndocs/deep/c.md: gone, 1 part would be removed\ndocs/draft.md: gone, 1 part would be removed\n" +
		"docs/piped.md: gone, 1 part would be removed\n2 read with 2 parts, nothing was stored, 4 gone\n"
	if _, last, _ := strings.Cut(out, "docs/a.md"); err != nil || "docs/a.md"+last != would {
		t.Errorf("dry: %v: %s%s", err, out, errs)
	}
	unchanged("dry")
	out, _, err = imported(t.Context(), web, "", args...)
	if _, usage := errors.AsType[*render.UsageError](err); !usage || out != "" ||
		err.Error() != "this removes 5 parts of 4 documents that are gone from their folders, such as docs/a.md: check with --dry-run, then give --yes" {
		t.Errorf("without --yes: %v: %s", err, out)
	}
	unchanged("without --yes")

	asked := func(answer string) (string, string, error) {
		cmd := command.Import(web, report.Options{Raw: true, User: "karl", Ask: report.NewAsker(strings.NewReader(answer))})
		var out, errs bytes.Buffer
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		cmd.SetArgs(args)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), errs.String(), err
	}
	for _, answer := range []string{"\n", "n\n", ""} {
		out, errs, err = asked(answer)
		if err != nil || !strings.HasPrefix(out, "Nothing was imported or removed.") ||
			!strings.Contains(errs, "docs/a.md\ndocs/deep/c.md\ndocs/draft.md\ndocs/piped.md\nRemove 5 parts of 4 documents that are gone from their folders? [y/N] ") {
			t.Errorf("answer %q: %v: %s%s", answer, err, out, errs)
		}
		unchanged("declined")
	}
	out, errs, err = asked("y\n")
	if err != nil || out != "1 imported with 1 part, 1 unchanged, 4 removed\n" {
		t.Errorf("agreed: %v: %s%s", err, out, errs)
	}
	want := []string{"docs/b.md", "docs/new.md", "docs2/e.md", "notes.md", "own"}
	if diff := cmp.Diff(want, documentsOf(t, web, "c")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"docs/a.md", "docs/b.md", "docs/deep/c.md", "docs/draft.md", "own"}, documentsOf(t, web, "other")); diff != "" {
		t.Errorf("another collection: %s", diff)
	}
	if out, errs, err = asked(""); err != nil || out != "0 imported with 0 parts, 2 unchanged\n" {
		t.Errorf("nothing is gone: %v: %s%s", err, out, errs)
	}

	// An empty folder has lost all of its documents, and JSON names each.
	for _, name := range []string{"docs/b.md", "docs/new.md"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	out, errs, err = imported(t.Context(), web, "", append(args, "--yes", "-o", "json")...)
	if err != nil || out != `{"document":"docs/b.md","status":"removed","removed":1}`+"\n"+`{"document":"docs/new.md","status":"removed","removed":1}`+"\n" {
		t.Errorf("%v: %s%s", err, out, errs)
	}
}

// One document that cannot be imported keeps all from being removed, and a folder without a name of its own is refused.
func TestPruneIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	d := dev(t)
	web := over("http://" + d.API)
	write(t, map[string]string{"docs/a.md": "A.", "docs/b.md": "B.", "docs/deep/c.md": "C."})
	args := []string{"docs", "--collection", "c", "--prune", "--yes"}
	if _, errs, err := imported(t.Context(), web, "", args...); err != nil {
		t.Fatal(err, errs)
	}
	if err := os.Remove("docs/a.md"); err != nil {
		t.Fatal(err)
	}
	write(t, map[string]string{"docs/b.md": "F\xe4hre"})
	_, _, err := imported(t.Context(), web, "", args...)
	if err == nil || err.Error() != "1 of 2 documents could not be imported, and so none was removed" {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff([]string{"docs/a.md", "docs/b.md", "docs/deep/c.md"}, documentsOf(t, web, "c")); diff != "" {
		t.Error(diff)
	}
	for args, want := range map[string]string{
		"docs/b.md --collection c --prune":          "--prune needs a folder: it removes",
		". --collection c --prune":                  "--prune needs a folder with a name of its own, not .:",
		"docs/deep/../../.. --collection c --prune": "--prune needs a folder with a name of its own, not ..:",
		"docs --prune --dry-run":                    "--collection is missing",
	} {
		_, _, err := imported(t.Context(), web, "", strings.Fields(args)...)
		if _, usage := errors.AsType[*render.UsageError](err); !usage || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// Over HTTP it takes a key whose role may write to memory: without one nothing is stored or removed.
func TestImportNeedsARole(t *testing.T) {
	t.Chdir(t.TempDir())
	d, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), NoWorker: true, Abrupt: true, Version: "0.0.0", Log: slog.New(slog.DiscardHandler),
		Dev: settings.Dev{Serving: settings.Serving{Access: settings.Access{Auth: settings.AuthOn}}, LongTerm: settings.LongTerm{Memory: settings.MemoryAuto}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := d.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	with := func(role control.AccessRole) conn.Connect {
		key := ""
		if role != "" {
			if key, _, err = admin.Keys().Create(t.Context(), dispatcher.KeySpec{Tenant: messages.DefaultTenant, Roles: []control.AccessRole{role}}); err != nil {
				t.Fatal(err)
			}
		}
		return overWith("http://"+d.API, key)
	}
	write(t, map[string]string{"docs/a.md": "A.", "docs/b.md": "B."})
	args := []string{"docs", "--collection", "c", "--prune", "--yes"}
	writer, viewer := with(control.RoleSubmitter), with(control.RoleViewer)
	refused := func(step string) {
		t.Helper()
		for name, key := range map[string]conn.Connect{"a viewer": viewer, "no key": with("")} {
			_, _, err := imported(t.Context(), key, "", args...)
			if p, ok := errors.AsType[*messages.Problem](err); !ok || p.Status != 403 && (name != "no key" || p.Status != 401) {
				t.Errorf("%s: %s imports: %v", step, name, err)
			}
		}
	}
	refused("before")
	if got := documentsOf(t, viewer, "c"); len(got) != 0 {
		t.Errorf("was stored without a right: %v", got)
	}
	if out, errs, err := imported(t.Context(), writer, "", args...); err != nil || out != "2 imported with 2 parts\n" {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	if err := os.Remove("docs/a.md"); err != nil {
		t.Fatal(err)
	}
	refused("after")
	if diff := cmp.Diff([]string{"docs/a.md", "docs/b.md"}, documentsOf(t, viewer, "c")); diff != "" {
		t.Error(diff)
	}
	if out, errs, err := imported(t.Context(), writer, "", args...); err != nil || out != "0 imported with 0 parts, 1 unchanged, 1 removed\n" {
		t.Errorf("%v: %s%s", err, out, errs)
	}
}
