package messages

import (
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
)

// Cause is why a run waits until its model may be called again: the last error of the call.
type Cause struct {
	Code     Code   `json:"code"`
	Message  string `json:"message"`
	Provider string `json:"provider,omitempty"` // that failed last, as "provider/model"
	Attempt  int    `json:"attempt,omitempty"`  // of the reply that is waited for, from 1: it grows with each wait for it
}

// Text is the cause on one line.
func (c *Cause) Text() string {
	text := strings.TrimSuffix(c.Message, ".")
	if c.Provider != "" && !strings.Contains(text, c.Provider) {
		text = c.Provider + ": " + text
	}
	if c.Code != "" {
		text += " (" + string(c.Code) + ")"
	}
	return text
}

// Shown is the cause as events hold it; nil stays nil.
func (c *Cause) Shown() *Cause {
	if c == nil {
		return nil
	}
	return &Cause{Code: c.Code, Message: strict.Brief(c.Message, MaxEventArgs), Provider: strict.Brief(c.Provider, MaxEventName), Attempt: c.Attempt}
}
