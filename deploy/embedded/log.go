package embedded

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// serverLog takes the NATS server's log: warnings and worse are passed on, the first fatal error is kept for StartNATS.
type serverLog struct {
	log *slog.Logger

	mu    sync.Mutex
	first error
}

var _ server.Logger = (*serverLog)(nil)

func newServerLog(log *slog.Logger) *serverLog { return &serverLog{log: log} }

// fatal is the error that ended the server's start, or nil.
func (l *serverLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// Fatalf keeps the error. The server expects the process to end here; StartNATS ends the server instead.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = fmt.Errorf(format, v...)
	}
}

// Errorf logs.
func (l *serverLog) Errorf(format string, v ...any) {
	l.log.Error("nats server", "text", fmt.Sprintf(format, v...))
}

// Warnf logs.
func (l *serverLog) Warnf(format string, v ...any) {
	l.log.Warn("nats server", "text", fmt.Sprintf(format, v...))
}

// Noticef discards.
func (*serverLog) Noticef(string, ...any) {}

// Debugf discards.
func (*serverLog) Debugf(string, ...any) {}

// Tracef discards.
func (*serverLog) Tracef(string, ...any) {}

// warnIfOpen tells the operator that others can reach a server that asks for no password.
func warnIfOpen(log *slog.Logger, name, host string) {
	if !isLoopback(host) {
		log.Warn("embedded server without a password listens beyond this machine", "server", name, "host", host)
	}
}
