package fleet

import (
	"log/slog"
	"path/filepath"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/sandbox/snapshot"
	"github.com/longshore-run/longshore/worker/policy"
	"github.com/longshore-run/longshore/worker/repository"
)

var _ snapshot.Store = (*files.Store)(nil)

// claimFolders are the folders of a worker's claims, whose files are saved on NATS.
func claimFolders(s *settings.Worker, b *bus.Bus, keys files.Sealer, version string, redact *policy.Redactor, log *slog.Logger) (*snapshot.Folders, error) {
	limits := s.WorkspaceLimits()
	repositories, err := repositories(s, version)
	if err != nil {
		return nil, err
	}
	return snapshot.NewFolders(snapshot.Config{
		Dir: filepath.Clean(s.Workspaces), Store: files.NewSealed(b, keys), Workspace: limits, Keep: s.WorkspaceKeep, Log: log,
		Limits: snapshot.Limits{Files: limits.Files, Total: limits.Total}, Fetch: repositories.Fetch, Redact: redact.String,
	})
}

// repositories gets what tasks name of git servers, as far as the settings allow it.
func repositories(s *settings.Worker, version string) (*repository.Client, error) {
	ca, err := s.GitCertificates()
	if err != nil {
		return nil, err
	}
	cfg := repository.Config{Hosts: s.GitHosts, CA: ca, Store: s.Granted().Credentials, Dir: filepath.Clean(s.Workspaces), Version: version}
	for _, c := range s.RepositoryCredentials() {
		cfg.Credentials = append(cfg.Credentials, repository.Credential{Tenant: c.Tenant, Name: c.Name})
	}
	c, err := repository.New(cfg)
	if err != nil {
		return nil, settings.Errorf("LONGSHORE_GIT_HOSTS, LONGSHORE_GIT_CREDENTIALS: %v", err)
	}
	return c, nil
}
