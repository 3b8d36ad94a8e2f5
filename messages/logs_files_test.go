package messages_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// filesStory is a run whose files are saved twice, by two workers.
func filesStory(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	s.add(started(), claimed("k1", "w1", 7), stepStarted(1))
	a := call("c1", "write_file", `{"path":"notes/a.txt"}`)
	s.add(replied(1, "", a), &record.ToolStarted{Step: 1, Call: a})
	s.add(returned(1, a, "written", ""),
		&record.FilesSaved{Step: 1, Manifest: strings.Repeat("0a", 32), Files: 2, Bytes: 7, Added: 2, LeftOut: 1},
		stepEnded(1, messages.StepCompleted), stepStarted(2))
	s.add(claimed("k2", "w2", 7))
	b := call("c1", "move_file", `{"from":"notes/a.txt","to":"b.txt"}`)
	s.add(replied(2, "", b), &record.ToolStarted{Step: 2, Call: b})
	s.add(returned(2, b, "moved", ""),
		&record.FilesSaved{Step: 2, Manifest: strings.Repeat("b1", 32), Files: 2, Bytes: 7, Added: 1, Changed: 1, Removed: 1},
		stepEnded(2, messages.StepCompleted), stepStarted(3))
	end := finished(3, "Moved.", nil)
	end.Result.Files = &messages.ResultFiles{Step: 2, Manifest: strings.Repeat("b1", 32), Count: 2, Bytes: 7}
	s.add(replied(3, "Moved."), stepEnded(3, messages.StepCompleted), end)
	return s.entries
}
