package httpstream

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
	cause  error // of the timer
}

func (w *watchdog) arm(d time.Duration, cause error) {
	w.stop()
	if w.timer != nil && errors.Is(w.cause, cause) { // nearly always: every read arms it
		w.timer.Reset(d)
		return
	}
	w.cause = cause
	w.timer = time.AfterFunc(d, func() { w.cancel(cause) })
}

func (w *watchdog) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
