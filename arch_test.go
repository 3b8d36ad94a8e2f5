package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/longshore-run/longshore/"

// No package may link what is listed for it here, by prefix of the import path. The same picture is drawn in
// docs/architecture.md.
var forbidden = map[string][]string{
	"messages/strict":      {"!std"},
	"messages/jsonscan":    {"!std"},
	"messages/sensitive":   {"!std"},
	"messages":             {"!std"},
	"messages/manifest":    {"!std"},
	"messages/memory":      {"!own", "messages/control", "net/http"},
	"messages/erasure":     {"!own", "messages/control", "net/http"},
	"messages/firstfiles":  {"messages/bus", "messages/runlog", "messages/record", "worker", "dispatcher", "tools", "sandbox", "observability", "deploy", "github.com", "net/http"},
	"messages/queue":       {"!own", "messages/record", "messages/logentry", "net/http"},
	"messages/logentry":    {"!own", "messages/record", "messages/queue", "net/http"},
	"messages/record":      {"!own", "messages/control", "net/http"},
	"messages/runlog":      {"!own", "net/http"},
	"messages/control":     {"!own", "net/http"},
	"messages/bus":         {"worker", "dispatcher", "tools", "sandbox", "observability", "deploy", "github.com/redis", "github.com/nats-io/nats-server", "github.com/spf13", "net/http/httptest"},
	"messages/hosts":       {"messages/bus", "messages/runlog", "worker", "dispatcher", "tools", "sandbox", "observability", "deploy", "github.com", "net/http"},
	"messages/egress":      {"messages/bus", "messages/runlog", "worker", "dispatcher", "tools", "sandbox", "observability", "deploy", "github.com"},
	"messages/database":    {"messages/bus", "messages/runlog", "worker", "dispatcher", "tools", "sandbox", "observability", "deploy", "github.com/nats-io", "github.com/redis", "net/http"},
	"messages/document":    {"messages/bus", "messages/runlog", "worker", "dispatcher", "tools", "sandbox", "observability", "deploy", "github.com/nats-io", "github.com/redis", "net/http"},
	"messages/prompt":      {"worker", "dispatcher", "messages/bus", "messages/runlog", "tools", "sandbox", "deploy", "github.com/nats-io", "github.com/redis", "net/http"},
	"dispatcher":           {"worker", "tools", "sandbox", "observability", "deploy", "github.com/redis", "github.com/sashabaranov", "github.com/spf13", "github.com/nats-io/nats-server", "database/sql", "github.com/prometheus"},
	"dispatcher/service":   {"worker", "tools", "sandbox", "observability", "deploy", "github.com/redis", "github.com/sashabaranov", "github.com/nats-io/nats-server"},
	"dispatcher/webhook":   {"worker", "tools", "sandbox", "observability", "deploy", "github.com/nats-io", "github.com/redis"},
	"dispatcher/api":       {"worker", "tools", "sandbox", "observability", "deploy", "github.com/redis", "github.com/sashabaranov", "github.com/nats-io/nats-server"},
	"dispatcher/auth":      {"worker", "dispatcher/service", "dispatcher/api", "messages/bus", "messages/runlog", "tools", "sandbox", "observability", "deploy", "github.com", "net/http"},
	"worker/agent":         {"github.com/nats-io", "github.com/redis", "net/http", "worker/runner", "dispatcher", "observability", "deploy"},
	"worker/runner":        {"github.com/nats-io", "github.com/redis", "net/http", "messages/bus", "dispatcher", "observability", "deploy"},
	"worker/fetch":         {"github.com/redis", "dispatcher", "observability", "deploy", "tools/files"},
	"worker/memorylimit":   {"!own", "net/http"},
	"worker/limits":        {"github.com/nats-io", "github.com/redis", "net/http", "messages/bus", "worker/runner", "dispatcher", "observability", "deploy"},
	"worker/model":         {"github.com/nats-io", "github.com/redis", "net/http"},
	"worker/replay":        {"github.com/nats-io", "github.com/redis", "net/http", "worker/runner", "dispatcher", "observability", "deploy"},
	"dispatcher/cli":       {"worker", "tools", "sandbox", "observability", "deploy", "github.com/redis", "github.com/nats-io/nats-server"},
	"worker/hooks":         {"github.com/nats-io", "github.com/redis", "worker/runner", "dispatcher", "deploy"},
	"worker/hooks/command": {"github.com/nats-io", "github.com/redis", "worker/runner", "dispatcher", "observability", "deploy"},
	"worker/embed":         {"github.com/nats-io", "github.com/redis", "net/http", "messages/bus", "dispatcher", "observability", "deploy"},
	"worker/agenttest":     {"github.com/nats-io", "github.com/redis", "net/http", "messages/bus", "dispatcher", "observability", "deploy"},
	"worker/repository":    {"github.com/nats-io", "github.com/redis", "github.com/go-git", "worker/runner", "dispatcher", "sandbox", "observability", "deploy"},
	"worker/live":          {"github.com/nats-io", "github.com/redis", "net/http", "worker/runner"},
	"tools/outbound":       {"github.com", "worker", "dispatcher", "sandbox", "observability", "deploy"},
	"tools/confined":       {"github.com/nats-io", "github.com/redis", "worker", "dispatcher", "observability", "deploy"},
	"tools/shell":          {"github.com/nats-io", "github.com/redis", "worker", "dispatcher", "observability", "deploy"},
	"tools/code":           {"github.com/nats-io", "github.com/redis", "worker", "dispatcher", "observability", "deploy"},
	"tools/code/engine":    {"github.com/nats-io", "github.com/redis", "net/http", "messages", "worker", "dispatcher", "sandbox", "deploy", "tools/confined"},
	"tools/mcp":            {"worker", "dispatcher", "observability", "deploy", "github.com/nats-io", "github.com/redis"},
	"tools/kv":             {"github.com/nats-io", "github.com/redis", "net/http", "worker", "dispatcher", "deploy"},
	"tools/remote":         {"github.com/redis", "github.com/nats-io/nats-server", "messages/bus", "worker", "dispatcher", "deploy"},
	"tools/web/markdown":   {"github.com/nats-io", "github.com/redis", "net/http", "messages", "worker", "dispatcher", "sandbox", "observability", "deploy"},
	"tools/sql":            {"github.com/nats-io", "github.com/redis", "net/http", "worker", "dispatcher", "deploy"},
	"tools":                {"github.com/nats-io", "github.com/redis", "net/http", "worker", "dispatcher"},
	"sandbox/process":      {"github.com/nats-io", "github.com/redis", "net/http", "worker", "dispatcher", "tools", "observability", "deploy"},
	"sandbox":              {"github.com/nats-io", "github.com/redis", "net/http", "worker", "dispatcher", "tools"},
	"sandbox/snapshot":     {"github.com/nats-io", "github.com/redis", "net/http", "messages/bus", "worker", "dispatcher", "tools", "observability", "deploy"},
	"sandbox/proxy":        {"github.com/nats-io", "github.com/redis", "worker", "dispatcher", "tools", "observability", "deploy"},
	"observability":        {"worker/runner", "dispatcher", "deploy", "github.com/redis", "github.com/sashabaranov"},

	"worker/repository/pack":  {"net", "github.com/nats-io", "github.com/redis", "github.com/go-git", "messages/bus", "worker/runner", "dispatcher", "tools", "sandbox", "observability", "deploy"},
	"worker/model/httpstream": {"github.com/nats-io", "github.com/redis", "github.com/sashabaranov", "github.com/anthropics", "worker/runner", "dispatcher", "observability", "deploy"},

	"dispatcher/cli/render":  {"dispatcher/cli/report", "dispatcher/cli/conn"},
	"dispatcher/cli/report":  {"dispatcher/cli/conn"},
	"dispatcher/cli/folder":  {"dispatcher/cli/conn", "dispatcher/cli/report", "dispatcher/cli/runs", "dispatcher/cli/catalog", "dispatcher/cli/admin", "dispatcher/cli/top"},
	"dispatcher/cli/conn":    {"dispatcher/cli/runs", "dispatcher/cli/catalog", "dispatcher/cli/admin", "dispatcher/cli/top"},
	"dispatcher/cli/runs":    {"dispatcher/cli/catalog", "dispatcher/cli/admin", "dispatcher/cli/top"},
	"dispatcher/cli/catalog": {"dispatcher/cli/runs", "dispatcher/cli/admin", "dispatcher/cli/top"},
	"dispatcher/cli/admin":   {"dispatcher/cli/runs", "dispatcher/cli/catalog", "dispatcher/cli/top"},
	"dispatcher/cli/top":     {"dispatcher/cli/runs", "dispatcher/cli/catalog", "dispatcher/cli/admin"},

	"deploy/command/memory/parts": {"messages/bus", "messages/runlog", "worker", "dispatcher", "sandbox", "observability", "deploy/fleet", "github.com/nats-io", "github.com/redis", "github.com/spf13"},

	"deploy/fleet": {"deploy/command", "dispatcher/cli", "github.com/spf13"},

	"observability/traces": {"worker", "dispatcher", "deploy", "github.com/redis", "google.golang.org/grpc"},
	"observability/audit":  {"worker", "dispatcher", "deploy", "github.com/redis", "github.com/prometheus"},
	"observability/index":  {"worker", "dispatcher", "tools", "sandbox", "deploy", "github.com/redis", "github.com/sashabaranov", "github.com/nats-io/nats-server"},
}

func TestImportsPointInwards(t *testing.T) {
	for pkg, rules := range forbidden {
		for _, dep := range deps(t, "./"+pkg) {
			for _, rule := range rules {
				if breaks(dep, pkg, rule) {
					t.Errorf("%s links %s, which it must not (%s)", pkg, dep, rule)
				}
			}
		}
	}
}

// Each start of a sandboxed process waits until all that its child links is initialised.
func TestChildOfTheSandboxIsLight(t *testing.T) {
	for _, pkg := range []string{"sandbox/process/confine", "sandbox/process/longshore-sandbox"} {
		for _, dep := range deps(t, "./"+pkg) {
			own, _ := strings.CutPrefix(dep, module)
			if std := !strings.Contains(strings.SplitN(dep, "/", 2)[0], "."); !std && own != "sandbox/process/confine" && own != pkg {
				t.Errorf("%s links %s, which is initialised after most packages", pkg, dep)
			}
			if strings.HasPrefix(dep, "net") || dep == "path/filepath" || strings.HasPrefix(dep, "crypto") || dep == "log/slog" || dep == "os/exec" {
				t.Errorf("%s links %s, which takes long to initialise", pkg, dep)
			}
		}
	}
}

// Two parts of the house are made of packages that do not know each other, but for what is drawn here: what another one below the
// same folder is built on.
var (
	// The roles of the bus, above its kernel.
	drawnRoles = map[string][]string{
		"taskqueue": {"deadletters"}, // a task that cannot be worked is a dead letter
		"webhooks":  {"deadletters"}, // and so is a webhook that is given up
	}
	// The owners of the dispatcher's requests, below its wiring. All of them may use request.
	drawnOwners = map[string][]string{
		"admission":   {"runs", "webhooks"}, // a task that was accepted before; a webhook that would never be delivered
		"approvals":   {"runs"},
		"batches":     {"admission", "runs", "webhooks"},
		"deadletters": {"admission", "webhooks"},
		"erasure":     {"runs"},
		"feedback":    {"runs"},
		"files":       {"runs"},
		"forks":       {"definitions", "runs"},
		"history":     {"runs"},
		"quotas":      {"admission"}, // counts what a tenant has queued
		"runindex":    {"runs"},
		"schedules":   {"admission", "runs"},
		"webhooks":    {"runs"}, // the address is in the task
		"why":         {"runs"},
	}
)

// The bus is a kernel and its roles, a package each: the kernel knows none of them, and they do not know each other.
func TestRolesOfTheBusStandAlone(t *testing.T) {
	const kernel = "messages/bus"
	roles := 0
	for pkg, imports := range below(t, kernel) {
		if pkg == kernel+"/bustest" { // of their tests
			continue
		}
		roles++
		for _, role := range imports {
			if role != "" && !slices.Contains(drawnRoles[strings.TrimPrefix(pkg, kernel+"/")], role) {
				t.Errorf("%s imports the role %s, which is not drawn", pkg, role)
			}
		}
		for _, dep := range deps(t, "./"+pkg) {
			for _, rule := range forbidden[kernel] {
				if breaks(dep, pkg, rule) {
					t.Errorf("%s links %s, which it must not (%s)", pkg, dep, rule)
				}
			}
		}
	}
	if roles < 2 {
		t.Errorf("found %d packages of the bus: this test looks in the wrong place", roles)
	}
}

// The dispatcher's requests have owners, a package each, which the wiring makes: they do not know it, nor each other.
func TestOwnersOfRequestsStandAlone(t *testing.T) {
	const wiring = "dispatcher/service"
	owners := 0
	for pkg, imports := range below(t, wiring) {
		owner := strings.TrimPrefix(pkg, wiring+"/")
		if pkg == wiring {
			continue
		}
		owners++
		for _, other := range imports {
			if other == "" || other != "request" && !slices.Contains(drawnOwners[owner], other) || owner == "request" {
				t.Errorf("%s imports %s/%s, which is not drawn", pkg, wiring, other)
			}
		}
	}
	if owners < 2 {
		t.Errorf("found %d owners of requests: this test looks in the wrong place", owners)
	}
}

// below are the packages of a folder, itself included, with what each imports of that folder: empty is the folder itself.
func below(t *testing.T, folder string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for line := range strings.Lines(output(t, "go", "list", "-f", "{{.ImportPath}}: {{join .Imports \" \"}}", "./"+folder+"/...")) {
		path, imports, _ := strings.Cut(strings.TrimSpace(line), ": ")
		pkg := strings.TrimPrefix(strings.TrimSuffix(path, ":"), module)
		found[pkg] = nil
		for imp := range strings.FieldsSeq(imports) {
			if own, ok := strings.CutPrefix(imp, module+folder); ok && (own == "" || own[0] == '/') {
				found[pkg] = append(found[pkg], strings.TrimPrefix(own, "/"))
			}
		}
	}
	return found
}

// breaks reports whether a dependency is against a rule: a prefix of a path of ours or of others, "!std" for anything
// beyond the standard library, messages/strict, messages/jsonscan and messages/manifest, "!own" for anything but those and the packages of the contract.
func breaks(dep, pkg, rule string) bool {
	own, isOwn := strings.CutPrefix(dep, module)
	std := !strings.Contains(strings.SplitN(dep, "/", 2)[0], ".")
	switch rule {
	case "!std":
		return !std && own != pkg && !slices.Contains([]string{"messages/strict", "messages/jsonscan", "messages/manifest"}, own)
	case "!own":
		contract := []string{"messages", "messages/strict", "messages/jsonscan", "messages/sensitive", "messages/record", "messages/queue", "messages/logentry", "messages/manifest", "messages/scratchpad", "messages/memory", "messages/erasure"}
		return !std && own != pkg && !slices.Contains(contract, own)
	default:
		if isOwn {
			return own == rule || strings.HasPrefix(own, rule+"/")
		}
		return dep == rule || strings.HasPrefix(dep, rule+"/")
	}
}

// Only the wiring imports leaves: it chooses between them.
func TestLeavesAreImportedByTheWiringOnly(t *testing.T) {
	leaves := []string{
		"worker/model/openai", "worker/model/anthropic", "worker/model/scripted", "worker/model/governor", "worker/model/replycache", "tools/delegate", "tools/files", "tools/human", "tools/kv", "tools/memory", "tools/scratchpad", "tools/sql", "tools/remote", "tools/web", "tools/search", "tools/mcp", "tools/shell", "tools/code", "observability", "dispatcher/cli", "dispatcher/service", "dispatcher/api",
		"deploy/embedded", "deploy/fleet", "worker/replay", "deploy/command", "deploy/command/replay", "deploy/command/policy", "deploy/command/tools", "deploy/command/doctor", "deploy/command/audit", "deploy/command/keyset", "deploy/command/memory", "worker/memory", "worker/model/prices", "worker/hooks", "worker/hooks/command", "worker/repository", "dispatcher/webhook",
		"dispatcher/auth/apikey", "dispatcher/auth/jwks", "observability/traces", "observability/audit", "observability/index",
	}
	out := output(t, "go", "list", "-f", "{{.ImportPath}}: {{join .Imports \" \"}}", "./...")
	for line := range strings.Lines(out) {
		path, imports, _ := strings.Cut(strings.TrimSpace(line), ": ")
		pkg := strings.TrimPrefix(path, module)
		if path == strings.TrimSuffix(module, "/") || strings.HasPrefix(pkg, "deploy/") || pkg == "messages/bus/bustest" { // linked by tests alone
			continue
		}
		for imp := range strings.FieldsSeq(imports) {
			leaf := strings.TrimPrefix(imp, module)
			for _, parted := range []string{"dispatcher/cli", "dispatcher/service"} {
				if strings.HasPrefix(leaf, parted+"/") { // a part of it
					leaf = parted
				}
			}
			if slices.Contains(leaves, leaf) && !strings.HasPrefix(pkg, leaf) {
				t.Errorf("%s imports the leaf %s", pkg, leaf)
			}
		}
	}
}

// Only the exporter imports OpenTelemetry. (Libraries that other packages use may link its interfaces.)
func TestOneLeafKnowsOpenTelemetry(t *testing.T) {
	out := output(t, "go", "list", "-f", "{{.ImportPath}}: {{join .Imports \" \"}}", "./...")
	for line := range strings.Lines(out) {
		path, imports, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if strings.Contains(imports, "go.opentelemetry.io/") && !strings.HasPrefix(path, module+"observability/traces") {
			t.Errorf("%s imports OpenTelemetry", path)
		}
	}
}

// One role of the bus knows the library for encryption. What stores anything sees an interface.
func TestOneRoleKnowsTink(t *testing.T) {
	out := output(t, "go", "list", "-f", "{{.ImportPath}}: {{join .Imports \" \"}}", "./...")
	for line := range strings.Lines(out) {
		path, imports, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if strings.Contains(imports, "github.com/tink-crypto/") && path != module+"messages/bus/keyring" {
			t.Errorf("%s imports tink", path)
		}
	}
}

func TestTopLevel(t *testing.T) {
	allowed := []string{
		"worker", "dispatcher", "messages", "tools", "sandbox", "observability", "deploy", "docs", "main.go", "arch_test.go",
		"go.mod", "go.sum", "Makefile", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "Dockerfile",
	}
	for name := range strings.FieldsSeq(output(t, "git", "ls-tree", "--name-only", "HEAD")) {
		if !strings.HasPrefix(name, ".") && !slices.Contains(allowed, name) {
			t.Errorf("%s stands at the top level", name)
		}
	}
}

// The commands of the README leave nothing untracked in a checkout: git ignores each folder that they create or read.
func TestFoldersOfTheREADMEAreIgnored(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, m := range regexp.MustCompile("(?m)^mkdir ([a-z-]+)$|--(?:workspace|agents|data) ([a-z-]+)|^# ([a-z-]+)/.*yaml$").FindAllStringSubmatch(string(readme), -1) {
		folders = append(folders, m[1]+m[2]+m[3]+"/a-file")
	}
	slices.Sort(folders)
	folders = slices.Compact(folders)
	if len(folders) < 2 {
		t.Fatalf("the README makes %q: this test does not know its commands", folders)
	}
	ignored := strings.Fields(output(t, "git", append([]string{"check-ignore", "--no-index"}, folders...)...))
	if !slices.Equal(ignored, folders) {
		t.Errorf("the README makes %q, of which git ignores %q", folders, ignored)
	}
}

// Commands are in two trees: those of a client, and those that link more. Other packages do not read command lines.
func TestCommandsAreInTheirTrees(t *testing.T) {
	out := output(t, "go", "list", "-f", "{{.ImportPath}}: {{join .Imports \" \"}}", "./...")
	for line := range strings.Lines(out) {
		path, imports, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if strings.Contains(imports, "github.com/spf13/cobra") && !strings.HasPrefix(path, module+"deploy/command") && !strings.HasPrefix(path, module+"dispatcher/cli") {
			t.Errorf("%s has a command: it belongs in deploy/command", path)
		}
	}
}

// Commands are in deploy/command; main wires them to the process.
func TestMainIsShort(t *testing.T) {
	const most = 80
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines >= most {
		t.Errorf("main.go has %d lines, but must have less than %d: put what a command does into deploy/command", lines, most)
	}
}

// What Longshore is compared with is a module of its own: no program that imports Longshore depends on it.
func TestPeersAreAModuleOfTheirOwn(t *testing.T) {
	const folder = "deploy/bench/peers"
	if _, err := os.Stat(folder + "/go.mod"); err != nil {
		t.Fatal(err)
	}
	if out := output(t, "go", "list", "./..."); strings.Contains(out, folder) {
		t.Errorf("%s is a package of this module", folder)
	}
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for _, peer := range []string{"github.com/hibiken/", "github.com/riverqueue/"} {
		if strings.Contains(string(sum), peer) {
			t.Errorf("go.sum has %s, which only %s compares with", peer, folder)
		}
	}
}

// Exceptions from lint stay few: one that is needed often is a rule that does not fit, and belongs in .golangci.yml.
func TestExceptionsFromLintAreFew(t *testing.T) {
	const most = 99
	n := 0
	for name := range strings.FieldsSeq(output(t, "git", "ls-files", "*.go")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(text), "//no"+"lint:")
	}
	if n == 0 || n > most {
		t.Errorf("there are %d exceptions from lint, and may be 1 to %d", n, most)
	}
}

// deps are a package of the module, as ./path, and all that it links.
func deps(t *testing.T, pkg string) []string {
	t.Helper()
	all, err := linked()
	if err != nil {
		t.Fatal(err)
	}
	name := module + strings.TrimPrefix(pkg, "./")
	found, ok := all[name]
	if !ok {
		t.Fatalf("there is no package %s", pkg)
	}
	return append(slices.Clone(found), name)
}

// linked is what each package of the module links. The go command is asked once, for it takes a third of a second each time.
var linked = sync.OnceValues(func() (map[string][]string, error) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`, "./...").Output()
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		all[words[0]] = words[1:]
	}
	return all, err
})

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return string(out)
}

// A backend that imports the client links the contract and the NATS client, and nothing of the fleet.
func TestClientIsLight(t *testing.T) {
	dir := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(module, "/")
	backend := strings.Replace(string(mod), "module "+name, "module example.com/backend", 1) +
		"\nrequire " + name + " v0.0.0\nreplace " + name + " => " + here + "\n"
	for file, content := range map[string]string{
		"go.mod": backend, "go.sum": string(sum),
		"main.go": "package main\n\nimport \"" + module + "dispatcher\"\n\nfunc main() { _ = dispatcher.New }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOPROXY", "off")
	linked := output(t, "go", "list", "-deps", ".")
	for _, heavy := range []string{
		"github.com/redis/", "github.com/sashabaranov/", "github.com/spf13/", "github.com/nats-io/nats-server", "github.com/alicebob/",
		"github.com/prometheus/", module + "worker", module + "deploy", module + "tools", module + "messages/prompt", "github.com/osteele/", "github.com/mailgun/",
		"github.com/tink-crypto/", "charm.land/", "github.com/charmbracelet/", "github.com/mattn/go-runewidth", "github.com/aymanbagabas/", "github.com/go-jose/",
	} {
		if strings.Contains(linked, heavy) {
			t.Errorf("a backend links %s", heavy)
		}
	}
	if !strings.Contains(linked, module+"dispatcher") {
		t.Errorf("the client is missing:\n%s", linked)
	}
	output(t, "go", "build", "-o", filepath.Join(dir, "backend"), ".")
}

// Configurations that take four fields or more of one value, and why each is not handed on whole.
var copiedConfigs = map[string]string{
	"deploy/settings/dev.go: Dispatcher of s":         "likewise, and three numbers for which a dispatcher of its own has variables of its own",
	"deploy/settings/dev.go: Worker of s":             "its fields are the parts of the settings, each handed on whole",
	"deploy/settings/dispatcher.go: bus.Streams of s": "packages outside deploy do not know the environment",
	"deploy/fleet/access.go: jwks.Config of s":        "packages outside deploy do not know the environment, and the variables of settings.Access have one help",
	"deploy/fleet/dev.go: embedded.Config of cfg":     "the flags of `longshore dev` grant the servers these four and no more",
	"worker/embed/service.go: runner.Config of s.cfg": "an embedded agent has a part of what a worker has, and describes it for programs that know no worker",
	"worker/worker.go: fetch.Config of cfg":           "fetching is a worker's own affair, and its configuration is that of the worker",
}

// Configuration is handed on whole: one that is filled field by field from another one misses the fields that are added later.
// What two processes fill alike has a method in deploy/settings.
func TestConfigurationIsNotCopiedByField(t *testing.T) {
	const most = 3
	files := strings.Fields(output(t, "git", "ls-files", "*.go"))
	if len(files) < 1000 {
		t.Fatalf("found %d files: this test looks in the wrong place", len(files))
	}
	found := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok || literal.Type == nil || !strings.HasSuffix(types.ExprString(literal.Type), "Config") && !strings.HasPrefix(name, "deploy/settings/") {
				return true
			}
			for from, n := range copies(literal) {
				if n > most {
					found[name+": "+types.ExprString(literal.Type)+" of "+from] = ""
				}
			}
			return true
		})
	}
	for where := range found {
		if copiedConfigs[where] == "" {
			t.Errorf("%s: more than %d fields are copied one by one: hand on the whole", where, most)
		}
	}
	for where := range copiedConfigs {
		if _, ok := found[where]; !ok {
			t.Errorf("%s: no longer copied field by field: take it out of the list", where)
		}
	}
}

// copies counts the fields of a literal that are read from a field of the same name, by the value that they are read from.
func copies(literal *ast.CompositeLit) map[string]int {
	out := map[string]int{}
	for _, e := range literal.Elts {
		field, _ := e.(*ast.KeyValueExpr)
		if field == nil {
			continue
		}
		name, _ := field.Key.(*ast.Ident)
		from, _ := field.Value.(*ast.SelectorExpr)
		if name != nil && from != nil && from.Sel.Name == name.Name {
			out[types.ExprString(from.X)]++
		}
	}
	return out
}

// A package or a type that grows beyond this has more than one concept.
func TestPackagesAndTypesAreSmall(t *testing.T) {
	const mostFiles, mostMethods = 30, 30
	method := regexp.MustCompile(`(?m)^func \((?:\w+ )?\*?(\w+)[^)]*\) ([A-Z]\w*)`)
	lines := output(t, "go", "list", "-f", "{{.ImportPath}} {{join .GoFiles \" \"}}", "./...")
	for line := range strings.Lines(lines) {
		names := strings.Fields(line)
		pkg := strings.TrimPrefix(names[0]+"/", module)
		pkg = strings.TrimSuffix(pkg, "/")
		if n := len(names) - 1; n > mostFiles {
			t.Errorf("%s has %d files, more than %d: split it", pkg, n, mostFiles)
		}
		methods := map[string]int{}
		for _, name := range names[1:] {
			text, err := os.ReadFile(filepath.Join(pkg, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range method.FindAllStringSubmatch(string(text), -1) {
				methods[m[1]]++
			}
		}
		for typ, n := range methods {
			if n > mostMethods {
				t.Errorf("%s.%s has %d exported methods, more than %d: split it", pkg, typ, n, mostMethods)
			}
		}
	}
}
