package doctor_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore-run/longshore/deploy/command/doctor"
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
		status  doctor.Status
		text    string
	}{
		"off":              {nil, "signing", doctor.OK, "off"},
		"its own":          {[]string{"LONGSHORE_SIGNING_KEY_FILE=" + seed, "LONGSHORE_CONTROL_KEYS=" + key.Public()}, "signing", doctor.OK, "on, with "},
		"not trusted":      {[]string{"LONGSHORE_SIGNING_KEY_FILE=" + seed}, "signing", doctor.Warn, "set LONGSHORE_CONTROL_KEYS of all workers and dispatchers to " + key.Public()},
		"another's":        {[]string{"LONGSHORE_SIGNING_KEY_FILE=" + seed, "LONGSHORE_CONTROL_KEYS=" + other.Public()}, "signing", doctor.Fail, "lacks " + key.Public()},
		"no file":          {[]string{"LONGSHORE_SIGNING_KEY_FILE=/none"}, "signing", doctor.Fail, "no such file"},
		"no key":           {[]string{"LONGSHORE_SIGNING_KEY_FILE=" + file(t, planted)}, "signing", doctor.Fail, "LONGSHORE_SIGNING_KEY_FILE"},
		"odd keys":         {[]string{"LONGSHORE_CONTROL_KEYS=x"}, "signing", doctor.Fail, "LONGSHORE_CONTROL_KEYS"},
		"everybody's":      {[]string{"LONGSHORE_SIGNING_KEY_FILE=" + open, "LONGSHORE_CONTROL_KEYS=" + key.Public()}, "key files", doctor.Warn, "all users of this machine may read " + open + " → chmod 600"},
		"no credentials":   {[]string{"NATS_CREDS=/none"}, "key files", doctor.Fail, "NATS_CREDS"},
		"a folder as nkey": {[]string{"NATS_NKEY=" + t.TempDir()}, "key files", doctor.Fail, "is not a file"},
		"a worker's": {
			[]string{"REDIS_URL=none", "LONGSHORE_CONTROL_KEYS=" + key.Public()}, "signing", doctor.OK, "on: only decisions",
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
		status  doctor.Status
		text    string
	}{
		"private":        {"LONGSHORE_WORKSPACES=" + private, "workspaces", doctor.OK, private},
		"open":           {"LONGSHORE_WORKSPACES=" + open, "workspaces", doctor.Warn, "chmod 700"},
		"to be made":     {"LONGSHORE_WORKSPACES=" + filepath.Join(dir, "new"), "workspaces", doctor.OK, "a worker creates it"},
		"far from made":  {"LONGSHORE_WORKSPACES=" + filepath.Join(dir, "new", "er"), "workspaces", doctor.Warn, "nor does"},
		"a file":         {"LONGSHORE_WORKSPACES=" + filepath.Join(dir, "agent.yaml"), "workspaces", doctor.Fail, "is not a folder"},
		"kernel's":       {"LONGSHORE_WORKSPACES=/proc", "workspaces", doctor.Fail, "write a file in it"},
		"no agents":      {"LONGSHORE_AGENTS=" + private, "agents", doctor.Fail, ""},
		"a wrong agent":  {"LONGSHORE_AGENTS=" + dir, "agents", doctor.Fail, "agent.yaml"},
		"no such folder": {"LONGSHORE_AGENTS=/none", "agents", doctor.Fail, "none"},
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
	r.expect(t, "disk of data", doctor.Fail, "no such file")
}
