package command

import (
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
)

// dispatcherCommand is `longshore dispatcher`.
func (p *Process) dispatcherCommand() *cobra.Command {
	return &cobra.Command{
		Use: "dispatcher", Short: "Run a dispatcher: it serves clients and maintains the streams",
		Long: "Run a dispatcher process. It is configured by its environment:\n\n" + settings.Describe(&settings.Dispatcher{}),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s settings.Dispatcher
			if err := settings.Load(&s, p.Environ()); err != nil {
				return err
			}
			defer p.keepHeap(cmd.Context(), s.MemoryLimit, 0)()
			log, err := logger(cmd, s.Logs, settings.Secrets(s))
			if err != nil {
				return err
			}
			return fleet.Dispatcher(cmd.Context(), s, p.Version, log, nil)
		},
	}
}
