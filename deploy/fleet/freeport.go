package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"github.com/longshore-run/longshore/deploy/settings"
)

// portsTried is how many ports above a taken one are looked at.
const portsTried = 20

// FreeAddress is addr or, when something listens there already and it need not be that one, the same host with the next
// port that is free. Otherwise the error names the flag.
func FreeAddress(ctx context.Context, flag, addr string, must bool) (string, error) {
	err := listens(ctx, addr)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return addr, nil // whatever else is wrong with it the part that listens there says
	}
	if must {
		return "", settings.Errorf("%s %s: something listens there already: give another address, or port 0 for any that is free", flag, addr)
	}
	host, text, _ := net.SplitHostPort(addr)
	port, _ := strconv.Atoi(text) // it was listened on
	for next := port + 1; next <= port+portsTried && next <= 65535; next++ {
		other := net.JoinHostPort(host, strconv.Itoa(next))
		if listens(ctx, other) == nil {
			return other, nil
		}
	}
	return "", settings.Errorf("%s %s: something listens there already, and on the %d ports after it", flag, addr, portsTried)
}

// listens tries to listen on an address for a moment.
func listens(ctx context.Context, addr string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if err := l.Close(); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return nil
}
