package settings

import (
	"crypto/x509"
	"strings"

	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
)

const gitCredentialsEnv = "LONGSHORE_GIT_CREDENTIALS"

// Git says which repositories a worker fetches for tasks.
type Git struct {
	GitHosts       []string `env:"LONGSHORE_GIT_HOSTS"       help:"hosts whose git repositories tasks may begin with, comma separated: github.com, git.example.com:8443 (default: none)"`
	GitCA          string   `env:"LONGSHORE_GIT_CA"          help:"file with CA certificates of git servers, PEM, that are trusted besides those of the system"`
	GitCredentials []string `env:"LONGSHORE_GIT_CREDENTIALS" help:"credentials of LONGSHORE_TOOLS for git repositories, comma separated: TENANT:NAME for the runs of one tenant, *:NAME for those of all (default: none)"`
}

// Check returns an *Error.
func (s *Git) Check() error {
	if _, err := hosts.Parse(s.GitHosts); err != nil {
		return Errorf("LONGSHORE_GIT_HOSTS: %v", err)
	}
	if _, err := s.GitCertificates(); err != nil {
		return err
	}
	for _, c := range s.GitCredentials {
		tenant, name, ok := strings.Cut(c, ":")
		if !ok || !strict.ValidToken(name) || tenant != anyTenant && !strict.ValidToken(tenant) {
			return Errorf(gitCredentialsEnv + ": must be the names of credentials such as acme:github, or *:github for all tenants. A secret does not belong here")
		}
	}
	return nil
}

// GitCertificates are those of GitCA, PEM. The error is an *Error.
func (s *Git) GitCertificates() ([]byte, error) {
	if s.GitCA == "" {
		return nil, nil
	}
	text, err := document.Read(s.GitCA, maxSecretFile)
	if err != nil {
		return nil, Errorf("LONGSHORE_GIT_CA: %v", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(text) {
		return nil, Errorf("LONGSHORE_GIT_CA: %s has no certificate in PEM", s.GitCA)
	}
	return text, nil
}

// anyTenant stands for all tenants.
const anyTenant = "*"

// GitCredential is one that fetches may use.
type GitCredential struct {
	Tenant string // whose runs may use it; empty: those of all
	Name   string
}

// RepositoryCredentials are those of GitCredentials.
func (s *Git) RepositoryCredentials() []GitCredential {
	all := make([]GitCredential, 0, len(s.GitCredentials))
	for _, c := range s.GitCredentials {
		tenant, name, _ := strings.Cut(c, ":")
		all = append(all, GitCredential{strings.TrimPrefix(tenant, anyTenant), name})
	}
	return all
}
