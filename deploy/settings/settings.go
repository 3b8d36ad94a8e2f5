// Package settings is the one place that defines what the processes read from their environment.
//
// [Load] fills a struct from the environment and checks it; [Describe] lists its variables with their defaults, for
// help texts and documentation.
package settings

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/caarlos0/env/v11"
)

// NATS says how to reach the message store.
type NATS struct {
	URL         string `env:"NATS_URL"          help:"servers, comma separated: nats://host:4222"`
	Credentials string `env:"NATS_CREDS"        help:"file with JWT credentials"`
	NKey        string `env:"NATS_NKEY"         help:"file with an nkey seed"`
	CA          string `env:"NATS_CA"           help:"file with the CA certificates of the servers"`
	InboxPrefix string `env:"NATS_INBOX_PREFIX" help:"prefix of reply subjects, when permissions demand one"`
}

// Models says which language models there are.
type Models struct {
	OpenAIKey   string `env:"OPENAI_API_KEY"  help:"key of an OpenAI-compatible provider" secret:"true"`
	OpenAIURL   string `env:"OPENAI_BASE_URL" help:"its base URL (default https://api.openai.com/v1)"`
	OpenAIModel string `env:"OPENAI_MODEL"    help:"the model of agents that name none; needed with a key"`

	LiteModel string `env:"OPENAI_LITE_MODEL"    help:"the model of /run-lite (default OPENAI_MODEL)"`
	LiteURL   string `env:"OPENAI_LITE_BASE_URL" help:"base URL of the model of /run-lite (default OPENAI_BASE_URL)"`

	AnthropicKey   string `env:"ANTHROPIC_API_KEY"  help:"key of Anthropic" secret:"true"`
	AnthropicURL   string `env:"ANTHROPIC_BASE_URL" help:"its base URL (default https://api.anthropic.com)"`
	AnthropicModel string `env:"ANTHROPIC_MODEL"    help:"the model of agents that name none; needed with a key"`

	Script string `env:"LONGSHORE_SCRIPT" help:"YAML file for the scripted model: demos and load tests without a key"`

	ProvidersFile string `env:"LONGSHORE_PROVIDERS" help:"YAML file with any number of model providers"`

	ModelRPM      int           `env:"LONGSHORE_MODEL_RPM"       envDefault:"0"  help:"requests per minute to each model, of the whole fleet; 0: no limit"`
	ModelTPM      int           `env:"LONGSHORE_MODEL_TPM"       envDefault:"0"  help:"tokens per minute of each model, of the whole fleet; 0: no limit"`
	ModelInFlight int           `env:"LONGSHORE_MODEL_INFLIGHT"  envDefault:"0"  help:"calls of each model at once, of the whole fleet; 0: no limit"`
	ReplyCacheTTL time.Duration `env:"LONGSHORE_REPLY_CACHE_TTL" envDefault:"1h" help:"how long a reply answers the same request of agents that ask for it; 0: never"`

	Prices string `env:"LONGSHORE_PRICES" help:"YAML or JSON file with prices of models, beside or instead of the built-in ones"`

	file    *ProvidersFile // as Load read it
	liteKey string         // OPENAI_API_KEY when it makes no provider but that of /run-lite
}

// Logs says how to log.
type Logs struct {
	Level  string `env:"LONGSHORE_LOG_LEVEL"  envDefault:"info" help:"debug, info, warn or error"`
	Format string `env:"LONGSHORE_LOG_FORMAT" envDefault:"json" help:"json or text"`
}

// Dispatcher is the environment of `longshore dispatcher`.
type Dispatcher struct {
	NATS
	Logs
	Webhooks
	Access
	HTTPAddr     string        `env:"LONGSHORE_HTTP_ADDR"        envDefault:"127.0.0.1:8420" help:"the HTTP API, metrics and health; port 0 picks a free one"`
	Agents       string        `env:"LONGSHORE_AGENTS"           help:"folder with agent definitions to publish"`
	AckWait      time.Duration `env:"LONGSHORE_ACK_WAIT"         envDefault:"30s"  help:"how long a silent worker keeps a task"`
	Replicas     int           `env:"LONGSHORE_REPLICAS"         envDefault:"1"    help:"copies of each stream: 1, 3 or 5"`
	EventsMaxAge time.Duration `env:"LONGSHORE_EVENTS_MAX_AGE"   envDefault:"336h" help:"how long events are kept"`
	DeadMaxAge   time.Duration `env:"LONGSHORE_DEAD_MAX_AGE"     envDefault:"720h" help:"how long dead letters are kept"`
	Retention    time.Duration `env:"LONGSHORE_RETENTION"        envDefault:"168h" help:"how long a run's log is kept after its end"`
	Sweep        time.Duration `env:"LONGSHORE_SWEEP"            envDefault:"10m"  help:"between looks for stranded runs"`
	LiteTimeout  time.Duration `env:"LONGSHORE_LITE_TIMEOUT"     envDefault:"120s" help:"how long /run-lite waits for its run before it cancels it"`
	SigningKey   string        `env:"LONGSHORE_SIGNING_KEY_FILE" help:"file with the key that signs what people decide"`
	ControlKeys  string        `env:"LONGSHORE_CONTROL_KEYS"     help:"public keys of those whose decisions count, comma separated (default: all count)"`
}

// Worker is the environment of `longshore worker`.
type Worker struct {
	NATS
	Models
	Logs
	Hooks
	RedisURL     string        `env:"REDIS_URL"               help:"short-term memory: redis:// or rediss://, or the word none" secret:"true"`
	HTTPAddr     string        `env:"LONGSHORE_HTTP_ADDR"     envDefault:"127.0.0.1:0" help:"metrics and health; port 0 picks a free one"`
	Name         string        `env:"LONGSHORE_WORKER"        help:"name of this worker (default: host name and process id)"`
	Slots        int           `env:"LONGSHORE_SLOTS"         envDefault:"64"  help:"runs worked at once"`
	DrainTimeout time.Duration `env:"LONGSHORE_DRAIN_TIMEOUT" envDefault:"30s" help:"how long a stop waits for steps to end"`
	MaxAttempts  int           `env:"LONGSHORE_MAX_ATTEMPTS"  envDefault:"5"   help:"claims without progress before a task is dead"`
	ModelTimeout time.Duration `env:"LONGSHORE_MODEL_TIMEOUT" envDefault:"60s" help:"how long a model may be silent"`
	Workspaces   string        `env:"LONGSHORE_WORKSPACES"    envDefault:"workspaces" help:"folder of the runs' files; they stay on this machine"`
	MemoryTTL    time.Duration `env:"LONGSHORE_MEMORY_TTL"    envDefault:"24h" help:"how long short-term memory is kept"`
	ControlKeys  string        `env:"LONGSHORE_CONTROL_KEYS"  help:"public keys of those whose decisions count, comma separated (default: all count)"`
}

// Dev is the environment of `longshore dev` and of `longshore run` without NATS_URL.
type Dev struct {
	Models
	Logs
	Hooks
	Webhooks
	Access
	AckWait      time.Duration `env:"LONGSHORE_ACK_WAIT"      envDefault:"30s" help:"how long a silent worker keeps a task"`
	Slots        int           `env:"LONGSHORE_SLOTS"         envDefault:"64"  help:"runs worked at once"`
	DrainTimeout time.Duration `env:"LONGSHORE_DRAIN_TIMEOUT" envDefault:"30s" help:"how long a stop waits for steps to end"`
	MaxAttempts  int           `env:"LONGSHORE_MAX_ATTEMPTS"  envDefault:"5"   help:"claims without progress before a task is dead"`
	ModelTimeout time.Duration `env:"LONGSHORE_MODEL_TIMEOUT" envDefault:"60s" help:"how long a model may be silent"`
	MemoryTTL    time.Duration `env:"LONGSHORE_MEMORY_TTL"    envDefault:"24h" help:"how long short-term memory is kept"`
	Retention    time.Duration `env:"LONGSHORE_RETENTION"     envDefault:"168h" help:"how long a run's log is kept after its end"`
	LiteTimeout  time.Duration `env:"LONGSHORE_LITE_TIMEOUT"  envDefault:"120s" help:"how long /run-lite waits for its run before it cancels it"`
}

// Worker is the worker of the fleet in one process.
func (s *Dev) Worker() Worker {
	return Worker{
		Slots: s.Slots, DrainTimeout: s.DrainTimeout, MaxAttempts: s.MaxAttempts, ModelTimeout: s.ModelTimeout, MemoryTTL: s.MemoryTTL,
		Hooks: s.Hooks,
	}
}

// Check returns an *Error.
func (s *Dev) Check() error {
	if err := errors.Join(s.Models.Check(), s.Logs.Check(), s.Hooks.Check(), s.Webhooks.Check(), s.Access.Check()); err != nil {
		return first(err)
	}
	w := s.Worker()
	if err := w.checkLimits(); err != nil {
		return err
	}
	if s.Retention <= 0 {
		return Errorf("LONGSHORE_RETENTION: must be above 0")
	}
	if s.LiteTimeout <= 0 {
		return Errorf("LONGSHORE_LITE_TIMEOUT: must be above 0")
	}
	return checkAckWait(s.AckWait)
}

// Client is the environment of the client commands.
type Client struct {
	NATS
	Tenant string `env:"LONGSHORE_TENANT"      help:"the tenant of commands without --tenant (default \"default\")"`
	Scoped bool   `env:"LONGSHORE_NATS_SCOPED" envDefault:"false" help:"the NATS user may only do what is of LONGSHORE_TENANT"`
}

// Error says that settings are missing or contradict each other.
type Error struct{ msg string }

func (e *Error) Error() string { return e.msg }

// Errorf returns an *Error.
func Errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Checker is a settings struct that can check itself.
type Checker interface{ Check() error }

// Load fills v, a pointer to one of the structs, from the environment and checks it. An *Error names the variable.
func Load(v Checker, environ []string) error {
	if err := parse(v, environ); err != nil {
		return err
	}
	if r, ok := v.(interface{ readProviders(environ []string) error }); ok {
		if err := r.readProviders(environ); err != nil {
			return err
		}
	}
	return v.Check()
}

// Read fills v from the environment and does not check that it is complete, for programs that bring parts of their own.
func Read(v any, environ []string) error { return parse(v, environ) }

func parse(v any, environ []string) error {
	vars := environment(environ)
	if err := env.ParseWithOptions(v, env.Options{Environment: vars}); err != nil {
		return parseProblem(v, vars, err)
	}
	return nil
}

func environment(environ []string) map[string]string {
	vars := map[string]string{}
	for _, kv := range environ {
		if k, val, ok := strings.Cut(kv, "="); ok {
			vars[k] = val
		}
	}
	return vars
}

// parseProblem names the first variable that cannot be read; the library's error names the Go field.
func parseProblem(v any, vars map[string]string, err error) error {
	if pe, ok := errors.AsType[env.ParseError](err); ok {
		for _, f := range fields(v) {
			if f.field == pe.Name {
				return Errorf("%s: %q is not a %s", f.name, vars[f.name], f.kind)
			}
		}
	}
	return Errorf("read settings: %v", err)
}

// Check returns an *Error.
func (s *NATS) Check() error {
	if s.URL == "" {
		return Errorf("NATS_URL is missing: the address of the message store, such as nats://127.0.0.1:4222")
	}
	for u := range strings.SplitSeq(s.URL, ",") {
		p, err := url.Parse(strings.TrimSpace(u))
		if err != nil || p.Host == "" {
			return Errorf("NATS_URL: not an address such as nats://127.0.0.1:4222")
		}
		switch p.Scheme {
		case "nats", "tls", "ws", "wss":
		default:
			return Errorf("NATS_URL: the scheme must be nats, tls, ws or wss")
		}
	}
	if s.Credentials != "" && s.NKey != "" {
		return Errorf("NATS_CREDS and NATS_NKEY contradict each other: give one")
	}
	return nil
}

// Configured tells whether any provider is given.
func (s *Models) Configured() bool {
	return s.OpenAIKey != "" || s.AnthropicKey != "" || s.Script != "" || s.ProvidersFile != ""
}

// Check returns an *Error. No provider at all is no error here.
func (s *Models) Check() error {
	switch {
	case s.OpenAIKey != "" && s.OpenAIModel == "":
		return Errorf("OPENAI_MODEL is missing: the name of the model to use with OPENAI_API_KEY")
	case s.OpenAIKey == "" && (s.OpenAIURL != "" || s.OpenAIModel != ""):
		return Errorf("OPENAI_API_KEY is missing: OPENAI_BASE_URL or OPENAI_MODEL is set (any text will do for a server that needs no key)")
	case s.AnthropicKey != "" && s.AnthropicModel == "":
		return Errorf("ANTHROPIC_MODEL is missing: the name of the model to use with ANTHROPIC_API_KEY")
	case s.AnthropicKey == "" && (s.AnthropicURL != "" || s.AnthropicModel != ""):
		return Errorf("ANTHROPIC_API_KEY is missing: ANTHROPIC_BASE_URL or ANTHROPIC_MODEL is set (any text will do for a server that needs no key)")
	}
	if s.ModelRPM < 0 || s.ModelTPM < 0 || s.ModelInFlight < 0 || s.ReplyCacheTTL < 0 {
		return Errorf("LONGSHORE_MODEL_RPM, LONGSHORE_MODEL_TPM, LONGSHORE_MODEL_INFLIGHT and LONGSHORE_REPLY_CACHE_TTL must not be below 0")
	}
	if s.OpenAIURL != "" {
		if p, err := url.Parse(s.OpenAIURL); err != nil || p.Host == "" || p.Scheme != "http" && p.Scheme != "https" {
			return Errorf("OPENAI_BASE_URL: not an address such as https://api.openai.com/v1")
		}
	}
	if s.AnthropicURL != "" {
		if p, err := url.Parse(s.AnthropicURL); err != nil || p.Host == "" || p.Scheme != "http" && p.Scheme != "https" {
			return Errorf("ANTHROPIC_BASE_URL: not an address such as https://api.anthropic.com")
		}
	}
	if err := s.checkLite(); err != nil {
		return err
	}
	return s.checkProviders()
}

// Check returns an *Error.
func (s *Logs) Check() error {
	switch s.Level {
	case "debug", "info", "warn", "error":
	default:
		return Errorf("LONGSHORE_LOG_LEVEL: %q is not debug, info, warn or error", s.Level)
	}
	if s.Format != "json" && s.Format != "text" {
		return Errorf("LONGSHORE_LOG_FORMAT: %q is not json or text", s.Format)
	}
	return nil
}

// minAckWait keeps a heartbeat, a third of it, above the noise of a network.
const minAckWait = 300 * time.Millisecond

// Check returns an *Error.
func (s *Dispatcher) Check() error {
	if err := errors.Join(s.NATS.Check(), s.Logs.Check(), s.Webhooks.Check(), s.Access.Check(), s.CheckAddress(s.HTTPAddr)); err != nil {
		return first(err)
	}
	if err := checkAckWait(s.AckWait); err != nil {
		return err
	}
	switch {
	case s.Replicas != 1 && s.Replicas != 3 && s.Replicas != 5:
		return Errorf("LONGSHORE_REPLICAS: must be 1, 3 or 5")
	case s.Retention <= 0 || s.DeadMaxAge <= 0:
		return Errorf("LONGSHORE_RETENTION and LONGSHORE_DEAD_MAX_AGE must be above 0")
	case s.EventsMaxAge <= s.Retention:
		return Errorf("LONGSHORE_EVENTS_MAX_AGE must be longer than LONGSHORE_RETENTION: a run's end is what its purge waits for")
	case s.Sweep < time.Second:
		return Errorf("LONGSHORE_SWEEP: must be at least 1s")
	case s.LiteTimeout <= 0:
		return Errorf("LONGSHORE_LITE_TIMEOUT: must be above 0")
	}
	return nil
}

// Check returns an *Error.
func (s *Worker) Check() error {
	if err := errors.Join(s.NATS.Check(), s.Models.Check(), s.Logs.Check(), s.Hooks.Check()); err != nil {
		return first(err)
	}
	switch {
	case !s.Configured():
		return Errorf("no model provider configured: set OPENAI_API_KEY and OPENAI_MODEL (and OPENAI_BASE_URL), or ANTHROPIC_API_KEY and ANTHROPIC_MODEL, or LONGSHORE_PROVIDERS for many, or LONGSHORE_SCRIPT for the scripted model")
	case s.RedisURL == "":
		return Errorf("REDIS_URL is missing: redis://host:6379 for short-term memory, or none to work without")
	case !isRedis(s.RedisURL):
		return Errorf("REDIS_URL: must be an address such as redis://host:6379, rediss:// for TLS, or none")
	}
	return s.checkLimits()
}

// isRedis only tells whether it may be an address; who connects reads it closely.
func isRedis(address string) bool {
	u, err := url.Parse(address)
	return address == "none" || err == nil && u.Host != "" && (u.Scheme == "redis" || u.Scheme == "rediss")
}

func (s *Worker) checkLimits() error {
	switch {
	case s.Slots < 1 || s.Slots > 100_000:
		return Errorf("LONGSHORE_SLOTS: must be 1 to 100000")
	case s.MaxAttempts < 1:
		return Errorf("LONGSHORE_MAX_ATTEMPTS: must be at least 1")
	case s.DrainTimeout <= 0 || s.ModelTimeout <= 0 || s.MemoryTTL <= 0:
		return Errorf("LONGSHORE_DRAIN_TIMEOUT, LONGSHORE_MODEL_TIMEOUT and LONGSHORE_MEMORY_TTL must be above 0")
	}
	return nil
}

func checkAckWait(d time.Duration) error {
	if d < minAckWait {
		return Errorf("LONGSHORE_ACK_WAIT: must be at least %s", minAckWait)
	}
	return nil
}

// Check returns an *Error.
func (s *Client) Check() error {
	if s.Scoped && s.Tenant == "" {
		return Errorf("LONGSHORE_TENANT is missing: LONGSHORE_NATS_SCOPED says that the NATS user is bound to it")
	}
	return s.NATS.Check()
}

// first is the first of joined errors: one clear line.
func first(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return err
}

type field struct{ name, def, help, kind, field string }

// fields lists the variables of a settings struct in the order of their definition.
func fields(v any) []field {
	var out []field
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for f := range t.Fields() {
		if f.Anonymous {
			out = append(out, fields(reflect.New(f.Type).Interface())...)
			continue
		}
		if !f.IsExported() {
			continue
		}
		kind := f.Type.String()
		if kind == "time.Duration" {
			kind = "duration such as 30s"
		}
		out = append(out, field{f.Tag.Get("env"), f.Tag.Get("envDefault"), f.Tag.Get("help"), kind, f.Name})
	}
	return out
}

// Variable is one variable of the environment.
type Variable struct{ Name, Default, Help string }

// Variables are those of a settings struct, in the order of their definition.
func Variables(v any) []Variable {
	var out []Variable
	for _, f := range fields(v) {
		out = append(out, Variable{f.name, f.def, f.help})
	}
	return out
}

// Describe returns one line for each variable of a settings struct: name, default, meaning.
func Describe(v any) string {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	for _, f := range fields(v) {
		def := f.def
		if def == "" {
			def = "-"
		}
		_, _ = fmt.Fprintf(tw, "  %s\t%s\t%s\n", f.name, def, f.help) // a Builder takes everything
	}
	_ = tw.Flush()
	return b.String()
}

// Secrets are the values of a settings struct that must never be shown, passwords within URLs included.
func Secrets(v any) []string {
	var out []string
	collect(reflect.ValueOf(v), &out)
	return out
}

func collect(v reflect.Value, out *[]string) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if m, ok := reflect.TypeAssert[Models](v); ok {
		*out = append(*out, m.keys()...)
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Anonymous:
			collect(v.Field(i), out)
		case f.Type.Kind() == reflect.String:
			text := v.Field(i).String()
			if f.Tag.Get("secret") == "true" && !strings.Contains(text, "://") && text != "none" {
				*out = append(*out, text)
			}
			*out = append(*out, passwords(text)...)
		}
	}
}

// passwords are those in comma-separated URLs.
func passwords(text string) []string {
	var out []string
	for u := range strings.SplitSeq(text, ",") {
		p, err := url.Parse(strings.TrimSpace(u))
		if err != nil || p.User == nil {
			continue
		}
		if pw, ok := p.User.Password(); ok {
			out = append(out, pw)
		} else {
			out = append(out, p.User.Username()) // a token
		}
	}
	return out
}
