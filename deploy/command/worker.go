package command

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/sandbox/process"
)

// workerCommand is `longshore worker`.
func (p *Process) workerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "worker", Short: "Run a worker: a member of the fleet that works tasks",
		Long: "Run a worker process. It is configured by its environment:\n\n" + settings.Describe(&settings.Worker{}),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Programs that tools start, such as an MCP server, run as the same user, and the environment holds keys.
			if err := process.HideProcess(); err != nil {
				return err
			}
			var s settings.Worker
			if err := settings.Load(&s, p.Environ()); err != nil {
				return err
			}
			if s.Name == "" {
				s.Name = fleet.WorkerName()
			}
			defer p.keepHeap(cmd.Context(), s.MemoryLimit, s.Slots)()
			log, err := logger(cmd, s.Logs, settings.Secrets(s))
			if err != nil {
				return err
			}
			return p.runWorker(cmd, s, log)
		},
	}
}

// runWorker runs a worker. Its log says what its end waits for; a terminal shows a sentence.
func (p *Process) runWorker(cmd *cobra.Command, s settings.Worker, log *slog.Logger) error {
	ctx, w := cmd.Context(), cmd.ErrOrStderr()
	if !render.IsTerminal(w) {
		return fleet.Worker(ctx, s, p.Version, log, fleet.Parts{}, nil)
	}
	held, done := make(chan func() int, 1), make(chan error, 1)
	go func() {
		done <- fleet.Worker(ctx, s, p.Version, log, fleet.Parts{Begun: func(count func() int) { held <- count }}, nil)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case count := <-held:
		sayStopping(w, count(), s.DrainTimeout, "with another worker")
	default: // it has not begun
	}
	return <-done
}
