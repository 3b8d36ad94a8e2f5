package settings

import (
	"errors"
	"time"
)

// Serving is how a dispatcher serves its clients, on its own or in the fleet of one process.
type Serving struct {
	Webhooks
	Access
	Traces
	RunIndex
	AckWait     time.Duration `env:"LONGSHORE_ACK_WAIT"     envDefault:"30s"  help:"how long a silent worker keeps a task"`
	Retention   time.Duration `env:"LONGSHORE_RETENTION"    envDefault:"168h" help:"how long a run's log is kept after its end"`
	Console     string        `env:"LONGSHORE_CONSOLE"      envDefault:"on"   help:"on: the console is served to browsers, at / of the HTTP address; off: it is not"`
	LiteTimeout time.Duration `env:"LONGSHORE_LITE_TIMEOUT" envDefault:"120s" help:"how long /run-lite waits for its run before it cancels it"`
}

// Check returns an *Error.
func (s *Serving) Check() error {
	if err := errors.Join(s.Webhooks.Check(), s.Access.Check(), s.Traces.Check(), s.RunIndex.Check()); err != nil {
		return first(err)
	}
	switch {
	case s.Console != "on" && s.Console != "off" && s.Console != "":
		return Errorf("LONGSHORE_CONSOLE: must be on or off")
	case s.Retention <= 0:
		return Errorf("LONGSHORE_RETENTION: must be above 0")
	case s.LiteTimeout <= 0:
		return Errorf("LONGSHORE_LITE_TIMEOUT: must be above 0")
	case s.AckWait < minAckWait:
		return Errorf("LONGSHORE_ACK_WAIT: must be at least %s", minAckWait)
	default:
		return nil
	}
}

// HasConsole reports whether browsers get the console. The zero value does not say, and tests of the API alone need none.
func (s *Serving) HasConsole() bool { return s.Console == "on" }

// minAckWait keeps a heartbeat, a third of it, above the noise of a network.
const minAckWait = 300 * time.Millisecond
