package anthropic

import (
	"context"
	"errors"
	"time"
)

// Causes of a request that the watchdog ended.
var (
	errNoHeaders = errors.New("no headers came")
	errIdle      = errors.New("nothing came for too long")
	errDrained   = errors.New("the connection was not closed in time")
)

// watchdog ends a request when an armed wait takes too long. It is used by one goroutine.
type watchdog struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func newWatchdog(cancel context.CancelCauseFunc) *watchdog { return &watchdog{cancel: cancel} }

func (w *watchdog) arm(d time.Duration, cause error) {
	w.stop()
	w.timer = time.AfterFunc(d, func() { w.cancel(cause) })
}

func (w *watchdog) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
