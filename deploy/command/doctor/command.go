// Package doctor is the command `longshore doctor`: it looks at everything that a fleet needs and says what is wrong
// and what to do. It changes nothing, but for --fix of its subcommands. It stands apart from the client commands because it
// links what workers use: Redis, models, sandbox.
package doctor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/worker/policy"
)

// Config is what the process passes to the command.
type Config struct {
	Environ func() []string
	Version string // of this program
	Raw     bool   // the output is no terminal: JSON is written as it is
}

// Errors that the command ends with once it has told what it found.
var (
	ErrUnhealthy = errors.New("something does not work")
	ErrStranded  = errors.New("there are stuck runs, which nothing will resume")
	ErrBroken    = errors.New("files of runs are missing or damaged")
)

// Bounds of a check's time.
const (
	defaultTimeout = 5 * time.Second
	leastTimeout   = 100 * time.Millisecond
	mostTimeout    = 5 * time.Minute
)

// Roles that an environment may be of.
const (
	roleWorker     = "worker"
	roleDispatcher = "dispatcher"
)

type flags struct {
	role, data, monitor string
	output              render.Format
	timeout             time.Duration
	call                bool
}

// Command is `longshore doctor`.
func Command(cfg Config) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check what a fleet needs, and say what to do",
		Long: "Check NATS and its streams, Redis, models, keys, folders, clock and disk as a worker or a dispatcher with this\n" +
			"environment would find them, and say how to fix what is wrong. Nothing is changed, and nothing costs money except\n" +
			"--call. Run it with the NATS user of a dispatcher: other users may not see everything.\n\n" +
			"It exits with 0 if nothing failed, 1 if something failed, 2 if the command line was wrong.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.run(cmd, &cfg)
		},
	}
	set := cmd.Flags()
	set.StringVar(&f.role, "role", "", "worker or dispatcher: whose environment this is (default: a worker's if it has REDIS_URL or a model)")
	f.output.Register(cmd)
	set.DurationVar(&f.timeout, "timeout", defaultTimeout, "how long each check may take")
	set.BoolVar(&f.call, "call", false, "make one tiny call to each provider's model, which costs money")
	set.StringVar(&f.data, "data", "", "`folder` of a longshore dev on this machine, to check its disk")
	set.StringVar(&f.monitor, "monitor", "", "monitoring address of the NATS server, such as http://127.0.0.1:8222, to check its settings")
	cmd.AddCommand(runsCommand(cfg), filesCommand(cfg))
	return cmd
}

func (f *flags) check() error {
	switch {
	case f.role != "" && f.role != roleWorker && f.role != roleDispatcher:
		return render.Usagef("--role: must be worker or dispatcher")
	case f.timeout < leastTimeout || f.timeout > mostTimeout:
		return render.Usagef("--timeout: must be %s to %s", leastTimeout, mostTimeout)
	case f.monitor != "" && !strings.HasPrefix(f.monitor, "http://") && !strings.HasPrefix(f.monitor, "https://"):
		return render.Usagef("--monitor: must be an address such as http://127.0.0.1:8222")
	default:
		return nil
	}
}

// report is what was found, as JSON has it.
type report struct {
	Healthy bool      `json:"healthy"`
	Checks  []Finding `json:"checks"`
}

func (f *flags) run(cmd *cobra.Command, cfg *Config) error {
	if err := settings.NeedNATS(cfg.Environ(), "this checks what a worker or a dispatcher finds at its NATS server"); err != nil {
		return err
	}
	env := read(cfg.Environ(), f.role)
	d := &doctor{env: env, timeout: f.timeout, call: f.call, data: f.data, monitor: f.monitor, version: cfg.Version}
	redact := policy.NewRedactor(env.secrets()...)
	r := report{Healthy: true, Checks: []Finding{}}
	failed := 0
	for group := range d.examine(cmd.Context()) {
		for _, found := range group {
			found.Found, found.Do = redact.String(found.Found), redact.String(found.Do)
			if found.Status == Fail {
				failed++
			}
			r.Checks = append(r.Checks, found)
			if f.output.JSON {
				continue
			}
			if _, err := fmt.Fprint(cmd.OutOrStdout(), found.text()); err != nil {
				return fmt.Errorf("write output: %w", err)
			}
		}
	}
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	if r.Healthy = failed == 0; f.output.JSON {
		if err := render.WriteJSON(cmd, r, cfg.Raw); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%w: %d of %d checks failed", ErrUnhealthy, failed, len(r.Checks))
	}
	return nil
}

// environment is what the processes of a fleet would read.
type environment struct {
	role       string
	worker     settings.Worker
	dispatcher settings.Dispatcher
	wrong      error // what the role would refuse to start with
	nats       error // what is wrong about NATS alone
}

// read reads an environment as the role would, and what the other role would read of it, as far as it goes.
func read(environ []string, role string) *environment {
	e := &environment{role: role}
	worker := settings.Load(&e.worker, environ)
	dispatcher := settings.Load(&e.dispatcher, environ)
	if e.role == "" {
		e.role = roleDispatcher
		if e.worker.RedisURL != "" || e.worker.Configured() || e.worker.OpenAIModel != "" || e.worker.AnthropicModel != "" {
			e.role = roleWorker
		}
	}
	if e.wrong = dispatcher; e.role == roleWorker {
		e.wrong = worker
	}
	e.nats = e.worker.NATS.Check()
	return e
}

func (e *environment) secrets() []string {
	return append(settings.Secrets(&e.worker), settings.Secrets(&e.dispatcher)...)
}
