package command

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/observability"
)

// logger returns the logger of a process that logs until it is stopped.
func logger(cmd *cobra.Command, s settings.Logs, secrets []string) (*slog.Logger, error) {
	return observability.NewLogger(cmd.ErrOrStderr(), observability.LogConfig{Level: s.Level, Format: s.Format, Redact: secrets})
}
