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
	if f.process.fleetElsewhere() && (f.workspace != "" || f.agents != "") {
		return nil, usageError("--workspace and --agents need the fleet in this process: unset NATS_URL and LONGSHORE_URL")
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
		files, err := render.With(f.with)
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
		t.SetDefaults()
		if err := t.Validate(); err != nil {
			return nil, usageError(err.Error())
		}
	}
	return tasks, nil
}
