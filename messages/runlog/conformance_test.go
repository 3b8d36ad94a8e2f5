package runlog_test

import (
	"testing"

	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/runlog/runlogtest"
)

func TestMemoryIsALog(t *testing.T) {
	runlogtest.Run(t, func(*testing.T) runlog.Log { return &runlog.Memory{} })
}
