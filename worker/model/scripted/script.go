package scripted

import (
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// Script is a checked script. Immutable.
type Script struct {
	model  string
	scenes []scene
}

type scene struct {
	match  string   // in the first user message; empty: any
	tools  []string // that the request must offer
	format string   // of the reply, by name, that the request must ask for; empty: any
	repeat bool
	turns  []turn
}

type turn struct {
	text         string
	calls        []call
	stop         messages.StopReason // empty: derived
	usage        *messages.Usage
	chunk        int
	delay, pause time.Duration
	failure      *model.Error // comes after the text

	hasPlaceholders bool // in text or arguments
}

type call struct {
	name      string
	raw       string // arguments as they are, when structured is nil
	arguments any    // a JSON object whose strings may hold placeholders
}
