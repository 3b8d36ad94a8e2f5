//go:build amd64 || arm64

package process_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		os.Exit(play(os.Getenv(roleVariable)))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		for _, dir := range built {
			_ = os.RemoveAll(dir)
		}
		if code == 0 && !tallied() {
			code = 1
		}
		os.Exit(code)
	}))
}
