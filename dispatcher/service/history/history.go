// Package history answers with pages of what is stored: of the log of a run, and of events.
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
}

// History answers with pages of what is stored: of the log of a run, and of events.
type History struct {
	cfg   Config
	parts logParts // of logs
}

// New returns a History. Close it.
func New(cfg Config) *History { return &History{cfg: cfg} }

// Handlers are the requests for pages.
func (h *History) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectLog:    request.Read(h.log),
		control.SubjectEvents: request.Read(h.events),
	}
}

// Close drops the entries that are kept between two requests.
func (h *History) Close() { h.parts.clear() }
