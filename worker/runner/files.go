package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/firstfiles"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/sandbox/snapshot"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/limits"
)

// claimFiles are the files of the run as this claim has them. Only the execution's goroutine uses it.
type claimFiles struct {
	*job

	journal *journal
	permits *limits.Semaphore
	folder  *snapshot.Folder // nil: no tool was called yet, or nothing is saved
	taken   bool             // the log has the files of the named workspace; written by take
}

// take returns what the log is to say of the files of the task's named workspace, when the run has the permit for it: they are its own
// from then on. A claim that has the permit of one before it finds in the log what that one took and saved since.
func (x *claimFiles) take(ctx context.Context) ([]record.Record, error) {
	name, k := x.journal.state.Task.Workspace, x.cfg.Controller
	if name == "" || k.Workspaces == nil || x.cfg.Folders == nil || x.taken || !x.permits.Acquired() {
		return nil, nil
	}
	turn, w, err := k.TakeWorkspace(ctx, x.run, x.journal.state.Head.ClaimSeq, name)
	if err != nil {
		return nil, err
	}
	x.taken = true
	if has := x.journal.state.Head.Workspace; has != nil && has.Turn == turn {
		return nil, nil
	}
	if w.Manifest != "" {
		if err := x.cfg.Folders.Refer(ctx, x.run, w.Manifest); err != nil {
			return nil, fmt.Errorf("take workspace %s: %w", name, err)
		}
	}
	return []record.Record{&record.FilesSaved{
		Step: x.journal.state.Step, Manifest: w.Manifest, Files: w.Files, Bytes: w.Bytes, Taken: &record.Taken{Workspace: name, Turn: turn, Run: w.Run},
	}}, nil
}

// open returns the workspace of calls that are about to be made, and what is to be called after them. It restores nothing yet: the first
// tool that touches a file does.
func (x *claimFiles) open(ctx context.Context) (_ *sandbox.Workspace, done func(), err error) {
	if x.cfg.Folders == nil {
		ws, err := x.cfg.Workspace(x.run)
		if err != nil {
			return nil, nil, fmt.Errorf("open workspace: %w", err)
		}
		return ws, func() { _ = ws.Close() }, nil
	}
	if x.folder == nil {
		if x.folder, err = x.cfg.Folders.Of(x.run, x.claimID); err != nil {
			return nil, nil, err
		}
	}
	hash := ""
	if f := x.journal.state.Files; f != nil {
		hash = f.Manifest
	}
	return x.folder.Workspace(ctx, hash), func() {}, nil
}

// first saves the files that a task brings to a run that is about to begin, and returns what the run's first entry is to say; nil: there
// are none. From then on the task names the contents. A *messages.RunError says why the task cannot be worked; any other error is a
// failure of the platform. Nothing is restored yet, and an owner that may not append has begun nothing.
func (x *claimFiles) first(ctx context.Context, task *messages.Task) (*record.FilesSaved, error) {
	if !task.HasFiles() {
		return nil, nil
	}
	if x.cfg.Folders == nil {
		return nil, &messages.RunError{Code: messages.CodeInvalidInput, Message: "files: runs work in a given folder here, which is used as it is: put the files there"}
	}
	saved, err := x.cfg.Folders.First(ctx, task)
	if wrong, ok := errors.AsType[*messages.FieldError](err); ok {
		return nil, &messages.RunError{Code: messages.CodeInvalidInput, Message: wrong.Error()}
	}
	if down, ok := errors.AsType[*firstfiles.FetchError](err); ok && x.ticket.Delivered >= x.cfg.MaxAttempts {
		return nil, &messages.RunError{Code: messages.CodeRepositoryUnreachable, Message: fmt.Sprintf(
			"%v; tried %d times: submit the task again when the server answers", down, x.ticket.Delivered)}
	}
	if err != nil {
		return nil, fmt.Errorf("save the files of the task: %w", err)
	}
	m := saved.Manifest
	if task.FetchesFiles() {
		x.cfg.Log.InfoContext(ctx, "repository fetched", "tenant", x.run.Tenant, "task_id", x.run.Run, "files", len(m.Files), "bytes", m.Bytes(),
			"left_out", m.LeftOut)
	}
	if saved.Pointers > 0 {
		x.cfg.Log.WarnContext(ctx, "files of a repository are pointers to contents in Git LFS, which are not fetched",
			"tenant", x.run.Tenant, "task_id", x.run.Run, "files", saved.Pointers)
	}
	task.NameFiles()
	return &record.FilesSaved{
		Manifest: saved.Hash, Files: len(m.Files), Bytes: m.Bytes(), Added: len(m.Files), LeftOut: m.LeftOut,
	}, nil
}

// save stores what calls have changed and returns what the entry of their report is to say; nil if they have changed nothing. Idle says
// that no other call is running. What cannot be saved because of a file is told to the model with the result, and the files stay
// as they were for the next claim; with any other error there must be no report, as if the worker had died before it.
func (x *claimFiles) save(res *tools.Result, idle bool) (*record.FilesSaved, error) {
	if x.folder == nil {
		return nil, nil
	}
	saved, err := x.folder.Save(x.journal.paid, idle)
	if file, ok := errors.AsType[*sandbox.PathError](err); ok {
		res.Content = append(res.Content, messages.Block{Text: "\nThe files of the run cannot be kept: " + file.Error() +
			". Until that is corrected, changes are lost when the run continues on another worker."})
		res.IsError = true
		return nil, nil
	}
	if err != nil || saved == nil {
		return nil, err
	}
	return &record.FilesSaved{
		Step: x.journal.state.Step, Manifest: saved.Hash, Files: len(saved.Manifest.Files), Bytes: saved.Manifest.Bytes(),
		Added: len(saved.Changes.Added), Changed: len(saved.Changes.Changed), Removed: len(saved.Changes.Removed), LeftOut: saved.Manifest.LeftOut,
	}, nil
}

// close removes the folder of the claim. That of a run which has ended stays for people on this machine.
func (x *claimFiles) close(ctx context.Context) {
	if x.folder == nil {
		return
	}
	if err := x.folder.Close(x.journal.state.Result != nil); err != nil {
		x.cfg.Log.WarnContext(ctx, "close the folder of a claim", "task_id", x.run.Run, "tenant", x.run.Tenant, "err", err)
	}
	x.folder = nil
}
