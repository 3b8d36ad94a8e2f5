package messages_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
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

// workspaceStory is a run in a named workspace: it finds a file there, adds one, waits for an answer while another run has the workspace,
// and continues with what that one has left.
func workspaceStory(t *testing.T) []record.Entry {
	t.Helper()
	s := story{t: t}
	begun := started()
	begun.Task.Workspace = "drafts"
	semaphore := queue.WorkspaceSemaphore(ref.Tenant, "drafts")
	s.add(begun, claimed("k1", "w1", 7), &record.Lined{Semaphores: []string{semaphore}})
	s.add(&record.FilesSaved{Manifest: strings.Repeat("0a", 32), Files: 1, Bytes: 3, Taken: &record.Taken{Workspace: "drafts", Turn: 1, Run: "run-0"}}, stepStarted(1))
	a, ask := call("c1", "write_file", `{"path":"a.txt"}`), call("c2", "ask", `{}`)
	s.add(replied(1, "", a, ask), &record.ToolStarted{Step: 1, Call: a})
	s.add(returned(1, a, "written", ""), &record.FilesSaved{Step: 1, Manifest: strings.Repeat("b1", 32), Files: 2, Bytes: 7, Added: 1}, &record.ToolStarted{Step: 1, Call: ask})
	s.add(&record.Parked{Reason: "answer", Call: "c2"})
	s.add(&record.Answered{ID: "x1", Park: uint64(len(s.entries)), Content: messages.TextContent("yes")})
	s.add(claimed("k2", "w2", 8))
	s.add(&record.FilesSaved{Step: 1, Manifest: strings.Repeat("c2", 32), Files: 2, Bytes: 9, Taken: &record.Taken{Workspace: "drafts", Turn: 3, Run: "run-2"}})
	s.add(returned(1, ask, "yes", ""), stepEnded(1, messages.StepCompleted), stepStarted(2))
	end := finished(2, "Done.", nil)
	end.Result.Files = &messages.ResultFiles{Step: 1, Manifest: strings.Repeat("c2", 32), Count: 2, Bytes: 9}
	s.add(replied(2, "Done."), stepEnded(2, messages.StepCompleted), end)
	return s.entries
}
