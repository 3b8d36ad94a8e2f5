package confined

import (
	"time"

	"github.com/longshore-run/longshore/tools"
)

// Tool is a tool whose calls run programs. It is present while they can be confined.
type Tool struct {
	tools.Tool

	Runner *Runner
}

var (
	_ tools.Timeouter = Tool{}
	_ tools.Presence  = Tool{}
)

// Timeout implements tools.Timeouter.
func (t Tool) Timeout() time.Duration { return t.Runner.Timeout() }

// Present implements tools.Presence.
func (t Tool) Present() bool { return t.Runner.Ready() == nil }
