package settings

import (
	"errors"
	"time"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/files"
)

// Dispatcher is the environment of `longshore dispatcher`.
type Dispatcher struct {
	NATS
	Logs
	Serving
	LogStore
	Events
	Encryption
	LongTerm
	Policy
	MemoryLimit
	RedisURL     string        `env:"REDIS_URL"                  help:"where workers keep what is erased with a run, and long-term memory if LONGSHORE_MEMORY says redis: redis:// or rediss://, or the word none" secret:"true"`
	HTTPAddr     string        `env:"LONGSHORE_HTTP_ADDR"        envDefault:"127.0.0.1:8420" help:"the HTTP API, metrics and health; port 0 picks a free one"`
	Agents       string        `env:"LONGSHORE_AGENTS"           help:"folder with agent definitions to publish"`
	Replicas     int           `env:"LONGSHORE_REPLICAS"         envDefault:"1"    help:"copies of each stream: 1, 3 or 5"`
	EventsMaxAge time.Duration `env:"LONGSHORE_EVENTS_MAX_AGE"   envDefault:"336h" help:"how long events are kept"`
	DeadMaxAge   time.Duration `env:"LONGSHORE_DEAD_MAX_AGE"     envDefault:"720h" help:"how long dead letters are kept"`
	Sweep        time.Duration `env:"LONGSHORE_SWEEP"            envDefault:"10m"  help:"interval between sweeps for stuck runs"`
	MaxInput     int           `env:"LONGSHORE_MAX_INPUT"        envDefault:"1048576" help:"maximum bytes of a task's input: 1 to 1048576"`
	FileBytes    int64         `env:"LONGSHORE_WORKSPACE_BYTES"  envDefault:"268435456"  help:"bytes that an uploaded file may have; as for the workers"`
	UploadBytes  int64         `env:"LONGSHORE_UPLOAD_BYTES"     envDefault:"1073741824" help:"bytes of a tenant's uploads that no run refers to yet"`
	SigningKey   string        `env:"LONGSHORE_SIGNING_KEY_FILE" help:"file with the key that signs people's decisions"`
	ControlKeys  string        `env:"LONGSHORE_CONTROL_KEYS"     help:"public keys whose signatures on decisions are accepted, comma separated (default: signatures are not required)"`
}

// Streams are the streams as the dispatcher sets them up.
func (s *Dispatcher) Streams() bus.Streams {
	return bus.Streams{
		Replicas: s.Replicas, EventMaxAge: s.EventsMaxAge, DeadMaxAge: s.DeadMaxAge, AckWait: s.AckWait,
		LogsMaxAge: s.LogsMaxAge, LogsMaxBytes: s.LogsMaxBytes,
	}
}

// Uploads are what callers may upload.
func (s *Dispatcher) Uploads() files.UploadLimits {
	return files.UploadLimits{Content: s.FileBytes, Pending: s.UploadBytes}
}

// Check returns an *Error.
func (s *Dispatcher) Check() error {
	if err := errors.Join(s.NATS.Check(), s.Logs.Check(), s.Serving.Check(), s.LogStore.Check(), s.LongTerm.Check(), s.MemoryLimit.Check(), CheckListen("LONGSHORE_HTTP_ADDR", s.HTTPAddr), s.CheckAddress(s.HTTPAddr)); err != nil {
		return first(err)
	}
	switch {
	case s.RedisURL != "" && !isRedis(s.RedisURL):
		return Errorf("REDIS_URL: must be an address such as redis://host:6379, rediss:// for TLS, or none")
	case s.Replicas != 1 && s.Replicas != 3 && s.Replicas != 5:
		return Errorf("LONGSHORE_REPLICAS: must be 1, 3 or 5")
	case s.EventsMaxAge < minMaxAge:
		return Errorf("LONGSHORE_EVENTS_MAX_AGE: must be at least %s: a stream remembers the ids of its messages for that long", minMaxAge)
	case s.DeadMaxAge < minMaxAge:
		return Errorf("LONGSHORE_DEAD_MAX_AGE: must be at least %s: a stream remembers the ids of its messages for that long", minMaxAge)
	case s.EventsMaxAge <= s.Retention:
		return Errorf("LONGSHORE_EVENTS_MAX_AGE must be longer than LONGSHORE_RETENTION: a run's end is what its purge waits for")
	case s.Sweep < time.Second:
		return Errorf("LONGSHORE_SWEEP: must be at least 1s")
	}
	return first(errors.Join(checkMaxInput(s.MaxInput), s.CheckEncryption(), checkUploads(s.FileBytes, s.UploadBytes)))
}

// minMaxAge is the streams' window of duplicates, which may not be longer than their messages are kept.
const minMaxAge = 2 * time.Minute

// checkUploads takes 0, which the environment does not give, for the default.
func checkUploads(file, pending int64) error {
	switch {
	case file < 0 || file > maxFileBytes:
		return Errorf("LONGSHORE_WORKSPACE_BYTES: must be 1 to %d", maxFileBytes)
	case pending < 0 || pending > maxFileBytes:
		return Errorf("LONGSHORE_UPLOAD_BYTES: must be 1 to %d", maxFileBytes)
	default:
		return nil
	}
}

// maxFileBytes bounds what the files of a run, or the uploads of a tenant, may have together.
const maxFileBytes int64 = 1 << 40
