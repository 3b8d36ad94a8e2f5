package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/folder"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
)

// workElsewhere takes the folder of --workspace to the fleet, runs the task there, and brings back what it has changed.
func (f *runFlags) workElsewhere(cmd *cobra.Command, client *dispatcher.Client, tasks []messages.Task) (err error) {
	dir, err := folder.Scan(cmd.Context(), f.workspace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	task, steps := &tasks[0], cmd.ErrOrStderr()
	if task.Manifest, err = dir.Send(cmd.Context(), client, task.Tenant, steps, render.IsTerminal(steps)); err != nil {
		return render.OneLine(err)
	}
	if task.ID == "" {
		task.ID = messages.NewID(time.Now())
	}
	err = f.watch(cmd, client, tasks)
	if _, failed := errors.AsType[*render.RunFailed](err); err != nil && !failed {
		return err // it has not ended, or nothing is known of it
	}
	return errors.Join(err, f.bringBack(cmd, client, dir, task.Ref(), err != nil))
}

// bringBack offers the changes of a run, and writes them into the folder if they are wanted.
func (f *runFlags) bringBack(cmd *cobra.Command, client *dispatcher.Client, dir *folder.Folder, run messages.Ref, failed bool) error {
	out := cmd.ErrOrStderr()
	back, err := dir.Compare(cmd.Context(), client, run)
	if err != nil {
		return render.OneLine(err)
	}
	if len(back.Changes) == 0 {
		return render.Write(out, "The run has changed no files.\n")
	}
	n := back.Count(f.overwrite)
	if err := render.Write(out, "The run has changed "+render.Count(int64(len(back.Changes)), "file")+":\n"+back.Text(f.overwrite)); err != nil {
		return err
	}
	fetch := "fetch them with `" + render.Command("files get", run) + " NAME --out FILE`"
	conflicts := back.Count(true) - n
	unwritten := fmt.Errorf("%s not written, because of what changed here meanwhile: %s", render.Count(int64(conflicts), "change"), fetch)
	if n == 0 && conflicts > 0 {
		return unwritten
	}
	write, err := f.wanted(cmd.Context(), out, n, failed)
	switch {
	case errors.Is(err, errNotAsked):
		return render.Write(out, "Nothing was written, because "+err.Error()+": "+fetch+". --yes writes the changes of a run that has completed.\n")
	case err != nil:
		return err
	case !write:
		return render.Write(out, "Nothing was written: "+fetch+".\n")
	}
	if err := back.Apply(cmd.Context(), client, f.overwrite); err != nil {
		return render.OneLine(err)
	}
	if err := render.Write(out, "Wrote "+render.Count(int64(n), "change")+" to "+f.where()+".\n"); err != nil {
		return err
	}
	if conflicts > 0 {
		return unwritten
	}
	return nil
}

// where is the whole path of the folder: "." at the end of a sentence says nothing.
func (f *runFlags) where() string {
	path, err := filepath.Abs(f.workspace)
	if err != nil {
		path = f.workspace
	}
	return render.Visible(path)
}

// errNotAsked means that changes need an answer which is not given.
var errNotAsked = errors.New("there is no terminal to ask on")

// wanted reports whether n changes are to be written.
func (f *runFlags) wanted(ctx context.Context, out io.Writer, n int, failed bool) (bool, error) {
	switch {
	case n == 0:
		return false, nil
	case f.yes && !failed:
		return true, nil
	case f.ask == nil:
		return false, errNotAsked
	}
	question := "Write " + render.Count(int64(n), "change") + " to " + f.where() + "?"
	if failed {
		question = "The run has not completed. " + question
	}
	yes, err := f.ask.Confirm(ctx, out, question, !failed)
	if errors.Is(err, io.EOF) {
		return false, errNotAsked
	}
	return yes, err
}
