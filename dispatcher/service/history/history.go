// Package history answers with what is stored: with pages of the log of a run and of events, and whether a run would be decided the same today.
package history

import (
	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Config is what History works with.
type Config struct {
	Log    runlog.Log
	Events *events.Store
	Runs   *runs.Runs
	Room   request.Room

	Check   Check  // nil: requests for checks are refused
	Version string // of the program, whose code checks
}

// History answers with what is stored.
type History struct {
	cfg      Config
	parts    logParts      // of logs
	checking chan struct{} // has an element for each run that is being checked
}

// New returns a History. Close it.
func New(cfg Config) *History { return &History{cfg: cfg, checking: make(chan struct{}, maxChecks)} }

// Handlers are the requests for pages and checks.
func (h *History) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectLog:    request.Read(h.log),
		control.SubjectCheck:  request.Read(h.check),
		control.SubjectEvents: request.Read(h.events),
	}
}

// Close drops the entries that are kept between two requests.
func (h *History) Close() { h.parts.clear() }
