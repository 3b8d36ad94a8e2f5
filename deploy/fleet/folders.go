package fleet

import (
	"log/slog"
	"path/filepath"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/sandbox/snapshot"
)

var _ snapshot.Store = (*files.Store)(nil)

// claimFolders are the folders of a worker's claims, whose files are saved on NATS.
func claimFolders(s *settings.Worker, b *bus.Bus, keys files.Sealer, log *slog.Logger) (*snapshot.Folders, error) {
	limits := s.WorkspaceLimits()
	return snapshot.NewFolders(snapshot.Config{
		Dir: filepath.Clean(s.Workspaces), Store: files.NewSealed(b, keys), Workspace: limits, Keep: s.WorkspaceKeep, Log: log,
		Limits: snapshot.Limits{Files: limits.Files, Total: limits.Total},
	})
}
