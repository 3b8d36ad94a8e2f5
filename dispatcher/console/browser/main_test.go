package browser_test

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"testing"

	"github.com/longshore-run/longshore/deploy/command"
)

// roleVariable has the test program be `longshore dispatcher`, with the arguments that follow.
const roleVariable = "LONGSHORE_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "dispatcher" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		code := command.Run(ctx, command.Process{Version: "0.0.0", Environ: os.Environ, Stdout: os.Stdout, Stderr: os.Stderr}, []string{"dispatcher"})
		stop()
		os.Exit(code)
	}
	http.DefaultClient.Timeout = patience // of each request past the browser
	os.Exit(m.Run())
}
