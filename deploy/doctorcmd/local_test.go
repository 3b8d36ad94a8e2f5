package doctorcmd_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore-run/longshore/deploy/doctorcmd"
	"github.com/longshore-run/longshore/messages/bus"
)

func TestKeys(t *testing.T) {
	key, err := bus.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	other, err := bus.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	seed := file(t, key.Seed()+"\n")
	open := file(t, key.Seed()+"\n")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	nats := "NATS_URL=nats://127.0.0.1:1"
	for name, tt := range map[string]struct {
		environ []string
		check   string
		status  doctorcmd.Status
		text    string
	}{
		"off":              {nil, "signing", doctorcmd.OK, "off"},
		"its own":          {[]string{"LONGSHORE_SIGNING_KEY_FILE=" + seed, "LONGSHORE_CONTROL_KEYS=" + key.Public()}, "signing", doctorcmd.OK, "which counts"},
		"nobody's":         {[]string{"LONGSHORE_SIGNING_KEY_FILE=" + seed}, "signing", doctorcmd.Warn, "set LONGSHORE_CONTROL_KEYS of all workers and dispatchers to " + key.Public()},
		"another's":        {[]string{"LONGSHORE_SIGNING_KEY_FILE=" + seed, "LONGSHORE_CONTROL_KEYS=" + other.Public()}, "signing", doctorcmd.Fail, "lacks " + key.Public()},
		"no file":          {[]string{"LONGSHORE_SIGNING_KEY_FILE=/none"}, "signing", doctorcmd.Fail, "no such file"},
		"no key":           {[]string{"LONGSHORE_SIGNING_KEY_FILE=" + file(t, planted)}, "signing", doctorcmd.Fail, "LONGSHORE_SIGNING_KEY_FILE"},
		"odd keys":         {[]string{"LONGSHORE_CONTROL_KEYS=x"}, "signing", doctorcmd.Fail, "LONGSHORE_CONTROL_KEYS"},
		"everybody's":      {[]string{"LONGSHORE_SIGNING_KEY_FILE=" + open, "LONGSHORE_CONTROL_KEYS=" + key.Public()}, "key files", doctorcmd.Warn, "all users of this machine may read " + open + " → chmod 600"},
		"no credentials":   {[]string{"NATS_CREDS=/none"}, "key files", doctorcmd.Fail, "NATS_CREDS"},
		"a folder as nkey": {[]string{"NATS_NKEY=" + t.TempDir()}, "key files", doctorcmd.Fail, "is not a file"},
		"a worker's": {
			[]string{"REDIS_URL=none", "LONGSHORE_CONTROL_KEYS=" + key.Public()}, "signing", doctorcmd.OK, "only decisions under",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := examine(t, append([]string{nats}, tt.environ...))
			r.expect(t, tt.check, tt.status, tt.text)
			for _, f := range r.Checks {
				if f.Found == key.Seed() {
					t.Errorf("the key is shown: %+v", f)
				}
			}
		})
	}
}

func TestFolders(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte("kind: Nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	private := private(t)
	for name, tt := range map[string]struct {
		environ string
		check   string
		status  doctorcmd.Status
		text    string
	}{
		"private":        {"LONGSHORE_WORKSPACES=" + private, "workspaces", doctorcmd.OK, private},
		"open":           {"LONGSHORE_WORKSPACES=" + open, "workspaces", doctorcmd.Warn, "chmod 700"},
		"to be made":     {"LONGSHORE_WORKSPACES=" + filepath.Join(dir, "new"), "workspaces", doctorcmd.OK, "a worker makes it"},
		"far from made":  {"LONGSHORE_WORKSPACES=" + filepath.Join(dir, "new", "er"), "workspaces", doctorcmd.Warn, "nor does"},
		"a file":         {"LONGSHORE_WORKSPACES=" + filepath.Join(dir, "agent.yaml"), "workspaces", doctorcmd.Fail, "is not a folder"},
		"kernel's":       {"LONGSHORE_WORKSPACES=/proc", "workspaces", doctorcmd.Fail, "write a file in it"},
		"no agents":      {"LONGSHORE_AGENTS=" + private, "agents", doctorcmd.Fail, ""},
		"a wrong agent":  {"LONGSHORE_AGENTS=" + dir, "agents", doctorcmd.Fail, "agent.yaml"},
		"no such folder": {"LONGSHORE_AGENTS=/none", "agents", doctorcmd.Fail, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := examine(t, []string{"REDIS_URL=none", tt.environ}, "--data", private)
			r.expect(t, tt.check, tt.status, tt.text)
			if len(r.of("disk of data")) != 1 {
				t.Errorf("%+v", r.Checks)
			}
		})
	}
	if entries, err := os.ReadDir(private); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	r, _ := examine(t, nil, "--data", "/none")
	r.expect(t, "disk of data", doctorcmd.Fail, "no such file")
}
