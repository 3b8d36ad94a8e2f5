package folder

import (
	"slices"
	"strings"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// Files with rules, which hold from their folder downwards. Where both speak of a name, the first decides.
const (
	ignoreFile    = ".longshoreignore"
	gitIgnoreFile = ".gitignore"
	maxRules      = 1 << 20 // bytes of one
)

// rules say what is left out.
type rules struct{ own, git []gitignore.Pattern }

func (r *rules) add(file, dir string, lines []string) {
	var domain []string
	if dir != "." {
		domain = strings.Split(dir, "/")
	}
	for _, line := range lines {
		if line = strings.TrimRight(line, "\r"); strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		p := gitignore.ParsePattern(line, domain)
		if file == ignoreFile {
			r.own = append(r.own, p)
		} else {
			r.git = append(r.git, p)
		}
	}
}

// why returns the reason for which rules leave a path out, whose parents they do not leave out.
func (r *rules) why(parts []string, dir bool) string {
	if gitFolder(parts) || strings.HasPrefix(parts[0], temporary) {
		return WhyIgnored
	}
	own := last(r.own, parts, dir)
	switch {
	case own == gitignore.Exclude:
		return WhyIgnored
	case own == gitignore.Include: // listed by name
		return ""
	case last(secrets(), lower(parts), dir) == gitignore.Exclude:
		return WhySecret
	case last(r.git, parts, dir) == gitignore.Exclude:
		return WhyIgnored
	default:
		return ""
	}
}

// leavesOut is why for a path whose parents may be left out too.
func (r *rules) leavesOut(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		if why := r.why(parts[:i+1], i+1 < len(parts)); why != "" {
			return why
		}
	}
	return ""
}

// isSecret reports whether a path, or a folder of it, is one of secrets.
func isSecret(secrets []gitignore.Pattern, name string) bool {
	parts := lower(strings.Split(name, "/"))
	for i := range parts {
		if last(secrets, parts[:i+1], i+1 < len(parts)) == gitignore.Exclude {
			return true
		}
	}
	return false
}

// last is what the last pattern says that speaks of a path.
func last(patterns []gitignore.Pattern, parts []string, dir bool) gitignore.MatchResult {
	for _, p := range slices.Backward(patterns) {
		if m := p.Match(parts, dir); m != gitignore.NoMatch {
			return m
		}
	}
	return gitignore.NoMatch
}

// lower is a path in lower case: many file systems do not tell the cases of letters apart.
func lower(parts []string) []string {
	return strings.Split(strings.ToLower(strings.Join(parts, "/")), "/")
}

// gitFolder reports whether a path is in the store of a git repository, as any file system may read its name: what is written there can
// have git run programs.
func gitFolder(parts []string) bool {
	for _, part := range parts {
		plain := strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) { // HFS+ leaves them out
				return -1
			}
			return r
		}, part)
		if plain = strings.TrimRight(plain, ". "); strings.EqualFold(plain, ".git") || strings.EqualFold(plain, "git~1") {
			return true
		}
	}
	return false
}

// secrets are names of files that often hold secrets.
func secrets() (patterns []gitignore.Pattern) {
	for _, p := range []string{
		".env", ".env.*", ".envrc", "!.env.example", "!.env.sample", "!.env.template", "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519",
		"id_ed25519_sk", "*.pem", "*.key", "*.ppk", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.keyset", "*.kdbx", ".netrc", "_netrc", ".npmrc", ".pypirc",
		".pgpass", ".my.cnf", ".htpasswd", ".git-credentials", ".vault-token", ".aws/credentials", ".docker/config.json", ".dockercfg", ".kube/config",
		"*.tfstate", "*.tfvars", ".ssh/", ".gnupg/",
	} {
		patterns = append(patterns, gitignore.ParsePattern(p, nil))
	}
	return patterns
}
