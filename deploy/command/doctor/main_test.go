package doctor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/deploy/command/doctor"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// The zone of the process is another one than that in which times are stored.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("", 2*60*60)
	goleak.VerifyTestMain(m)
}

const (
	patience = time.Minute
	version  = "0.0.0"
	planted  = "sk-planted-secret-of-these-tests" // must never be shown
)

// runDoctor runs the command and returns what it printed.
func runDoctor(t *testing.T, environ []string, args ...string) (stdout string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	environ = append([]string{"LONGSHORE_ENCRYPTION=off"}, environ...) // a later one wins
	root := &cobra.Command{Use: "longshore"}
	root.AddCommand(doctor.Command(doctor.Config{Environ: func() []string { return environ }, Version: version, Raw: true}))
	cli.Usage(root)
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(append([]string{"doctor"}, args...))
	err = root.ExecuteContext(ctx)
	all := out.String() + errs.String()
	if err != nil {
		all += err.Error()
	}
	if strings.Contains(all, planted) {
		t.Errorf("a secret is shown: %s", all)
	}
	return out.String(), err
}

// report is what the command printed as JSON.
type report struct {
	Healthy bool             `json:"healthy"`
	Checks  []doctor.Finding `json:"checks"`
}

func examine(t *testing.T, environ []string, args ...string) (report, error) {
	t.Helper()
	out, err := runDoctor(t, environ, append(args, "-o", "json")...)
	var r report
	if jerr := json.Unmarshal([]byte(out), &r); jerr != nil {
		t.Fatalf("%q: %v, %v", out, jerr, err)
	}
	for _, f := range r.Checks {
		if f.Do == "" && (f.Status == doctor.Warn || f.Status == doctor.Fail) {
			t.Errorf("it does not say what to do: %+v", f)
		}
	}
	return r, err
}

// of is what a check found.
func (r *report) of(check string) []doctor.Finding {
	return slices.DeleteFunc(slices.Clone(r.Checks), func(f doctor.Finding) bool { return f.Check != check })
}

// expect holds what a check found against a status and a part of its text.
func (r *report) expect(t *testing.T, check string, status doctor.Status, text string) {
	t.Helper()
	for _, f := range r.of(check) {
		if f.Status == status && strings.Contains(f.Found+" → "+f.Do, text) {
			return
		}
	}
	t.Errorf("no %s of %s with %q in %+v", status, check, text, r.Checks)
}

// startNATS runs a server with options, on a free port.
func startNATS(t *testing.T, change func(*server.Options)) *server.Server {
	t.Helper()
	opts := &server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, StoreDir: t.TempDir(), MaxPayload: 2 << 20}
	change(opts)
	ns, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() {
		ns.Shutdown()
		ns.WaitForShutdown()
	})
	if !ns.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	return ns
}

// listen answers every connection with a text, and closes it.
func listen(t *testing.T, greeting string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(greeting))
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// closedPort returns an address on which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

const script = `
scenes:
  - match: ""
    turns: [{text: Done.}]
`

// startFleet is a fleet in this process with a scripted model.
func startFleet(t *testing.T, change ...func(*fleet.DevConfig)) *fleet.Dev {
	t.Helper()
	play, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	cfg := fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 8, MaxAttempts: 5}}, Abrupt: true, Version: version,
		Log: slog.New(slog.DiscardHandler), Parts: fleet.Parts{Model: scripted.New(play)},
	}
	for _, c := range change {
		c(&cfg)
	}
	cfg.Encryption.Encryption = settings.EncryptionOff
	dev, err := fleet.StartDev(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// file writes a file for its owner alone.
func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// private is a folder of its owner alone.
func private(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
