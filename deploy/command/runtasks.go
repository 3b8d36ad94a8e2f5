package command

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
)

// tasks returns the tasks to run, checked.
func (f *runFlags) tasks(cmd *cobra.Command, args []string) ([]messages.Task, error) {
	if cmd.Flags().Changed("max-steps") && f.maxSteps < 1 {
		return nil, usageError("--max-steps must be at least 1")
	}
	elsewhere := f.process.fleetElsewhere()
	switch {
	case elsewhere && f.agents != "":
		return nil, usageError("--agents needs the fleet in this process: unset NATS_URL and LONGSHORE_URL")
	case elsewhere && f.workspace != "" && len(f.files) > 1:
		return nil, usageError("--workspace goes with one task when the fleet is elsewhere: give one --file")
	case (f.yes || f.overwrite) && (f.workspace == "" || !elsewhere):
		return nil, usageError("--yes and --overwrite go with --workspace and a fleet elsewhere (NATS_URL or LONGSHORE_URL)")
	case f.console && f.process.env("LONGSHORE_CONSOLE") == "off":
		return nil, usageError("--console: LONGSHORE_CONSOLE is off: unset it")
	case f.console && elsewhere && f.process.terminal(cmd.ErrOrStderr(), cmd.OutOrStdout()).Console == "":
		return nil, usageError("--console: where the console of this fleet is, is not known: set LONGSHORE_CONSOLE_URL to its address")
	}
	if f.workspace != "" {
		if info, err := os.Stat(f.workspace); err != nil || !info.IsDir() {
			return nil, usageError("--workspace " + f.workspace + " is not a folder")
		}
	}
	var tasks []messages.Task
	for _, file := range f.files {
		data, err := render.ReadTask(cmd, file)
		if err != nil {
			return nil, err
		}
		t, err := messages.DecodeTask(data)
		if err != nil {
			return nil, usageError("read task " + file + ": " + err.Error())
		}
		tasks = append(tasks, *t)
	}
	if len(args) == 1 {
		text := args[0]
		if text == "-" {
			data, err := render.ReadFile(cmd, text, messages.MaxInput)
			if err != nil {
				return nil, err
			}
			text = string(data)
		}
		input, err := render.Attach(cmd, text, f.attach)
		if err != nil {
			return nil, err
		}
		files, err := render.FirstFiles(f.with, f.git)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, messages.Task{Input: input, Files: files})
	}
	for i := range tasks {
		t := &tasks[i]
		t.Agent, t.Session, t.Tenant = cmp.Or(f.agent, t.Agent), cmp.Or(f.session, t.Session), cmp.Or(f.tenant, t.Tenant)
		if f.maxSteps != 0 {
			t.Limits = &messages.Limits{MaxSteps: f.maxSteps}
		}
		if elsewhere && f.workspace != "" && (t.HasFiles() || t.Workspace != "") {
			return nil, usageError("--workspace: the task has files or a workspace of its own")
		}
		t.SetDefaults()
		if err := t.Validate(); err != nil {
			return nil, usageError(err.Error())
		}
	}
	return tasks, nil
}
