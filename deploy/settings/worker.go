package settings

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Worker is the environment of `longshore worker`.
type Worker struct {
	NATS
	Models
	Logs
	Hooks
	Git
	Tools
	Policy
	Events
	Encryption
	LongTerm
	MemoryLimit
	RedisURL string `env:"REDIS_URL"               help:"short-term memory: redis:// or rediss://, redis+sentinel:// for Sentinel, or the word none" secret:"true"`
	HTTPAddr string `env:"LONGSHORE_HTTP_ADDR"     envDefault:"127.0.0.1:0" help:"metrics and health; port 0 picks a free one"`
	Name     string `env:"LONGSHORE_WORKER"        help:"name of this worker (default: host name and process id)"`
	Labels   string `env:"LONGSHORE_WORKER_LABELS" help:"labels of this worker, which tasks can require: gpu=true,zone=a"`
	Runs
	Workspaces   string        `env:"LONGSHORE_WORKSPACES"    envDefault:"workspaces" help:"folder of the files of the runs that this worker works"`
	MaxClockSkew time.Duration `env:"LONGSHORE_MAX_CLOCK_SKEW" envDefault:"30s" help:"how far this machine's clock may differ from the NATS server's before the worker takes no new work"`
	ControlKeys  string        `env:"LONGSHORE_CONTROL_KEYS"  help:"public keys whose signatures on decisions are accepted, comma separated (default: signatures are not required)"`
}

// Check returns an *Error.
func (s *Worker) Check() error {
	if err := errors.Join(s.NATS.Check(), s.Models.Check(), s.Logs.Check(), s.Hooks.Check(), s.Git.Check(), s.LongTerm.Check(), s.MemoryLimit.Check(), CheckListen("LONGSHORE_HTTP_ADDR", s.HTTPAddr)); err != nil {
		return first(err)
	}
	switch {
	case !s.Configured():
		return Errorf("no model provider configured: set OPENAI_API_KEY and OPENAI_MODEL (and OPENAI_BASE_URL), or ANTHROPIC_API_KEY and ANTHROPIC_MODEL, or LONGSHORE_PROVIDERS for many, or LONGSHORE_SCRIPT for the scripted model")
	case s.RedisURL == "":
		return Errorf("REDIS_URL is missing: redis://host:6379 for short-term memory, or none to work without")
	case !isRedis(s.RedisURL):
		return Errorf("REDIS_URL: must be an address such as redis://host:6379, rediss:// for TLS, redis+sentinel://host:26379?master_name=NAME for Sentinel, or none")
	case s.MaxClockSkew < minClockSkew:
		return Errorf("LONGSHORE_MAX_CLOCK_SKEW: must be at least %v", minClockSkew)
	}
	if _, err := messages.ParseLabels(s.Labels); err != nil {
		return Errorf("LONGSHORE_WORKER_LABELS: %v", err)
	}
	return first(errors.Join(s.Runs.Check(), s.CheckEncryption()))
}

// minClockSkew leaves room for clocks that are set over a network.
const minClockSkew = time.Second

// isRedis only reports whether it may be an address; who connects reads it closely.
func isRedis(address string) bool {
	u, err := url.Parse(address)
	if address == "none" || err != nil {
		return address == "none"
	}
	scheme := strings.TrimSuffix(u.Scheme, "+sentinel")
	return u.Host != "" && (scheme == "redis" || scheme == "rediss")
}
