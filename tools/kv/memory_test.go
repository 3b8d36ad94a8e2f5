package kv_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/tools/kv"
	"github.com/longshore-run/longshore/tools/kv/kvtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemoryConforms(t *testing.T) {
	kvtest.Run(t, func(_ *testing.T, l kv.Limits) kv.Store { return kv.NewMemory(l, nil) })
}
