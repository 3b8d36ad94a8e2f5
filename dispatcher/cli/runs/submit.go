package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/folder"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// order is what the flags of submit ask for.
type order struct {
	conn.Shared
	task     messages.Task
	priority string
	labels   []string
	requires string
	maxSteps int
	context  string
	at, in   string
	webhook  string
	attach   []string
	folder   string
	with     []string
	git      []string
}

// submissions are the commands that submit tasks.
type submissions struct{ *conn.Caller }

func (c submissions) submit() *cobra.Command {
	var o order
	cmd := &cobra.Command{
		Use:   "submit TEXT|-",
		Short: "Submit a task",
		Long: "Submit a task and print its id, once it is stored. The text - reads the task from standard input.\n" +
			"The same task with the same --id may be submitted again: it is one run.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return render.Usagef("needs the task's text as one argument, or - to read it from standard input; got %d arguments: quote the text", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.runSubmit(cmd, &o, args[0]) },
	}
	o.Register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.task.Agent, "agent", messages.DefaultAgent, "agent that works the task")
	flags.StringVar(&o.task.ID, "id", "", "id of the run; a new one by default")
	flags.StringVar(&o.task.Session, "session", "", "name of the session that the task belongs to")
	flags.StringVar(&o.task.Workspace, "named-workspace", "", "name of a workspace whose files the run works on, taking turns with other runs")
	flags.StringVar(&o.priority, "priority", string(messages.PriorityNormal), "high, normal or low")
	flags.StringArrayVar(&o.labels, "label", nil, "key=value; may be repeated")
	flags.StringVar(&o.requires, "requires", "", "labels that the worker must have: gpu=true,zone=a; the run waits until there is such a worker")
	flags.IntVar(&o.maxSteps, "max-steps", 0, "maximum number of steps (default: the agent's)")
	flags.StringVar(&o.context, "context", "", "facts for the agent, as a JSON object")
	flags.StringVar(&o.at, "at", "", "earliest start, a time such as 2026-12-31T08:00:00+01:00")
	flags.StringVar(&o.in, "in", "", "earliest start, a duration from now such as 10m")
	flags.StringVar(&o.task.By, "by", c.Options.User, "your name, which is stored with the task")
	flags.StringVar(&o.webhook, "webhook", "", "URL that is called when the run has ended")
	flags.StringArrayVar(&o.attach, "attach", nil, render.AttachHelp)
	flags.StringVar(&o.folder, "workspace", "", "folder to upload; the run starts with its files")
	flags.StringArrayVar(&o.with, "with", nil, render.WithHelp)
	flags.StringArrayVar(&o.git, "git", nil, render.GitHelp)
	return cmd
}

func (c submissions) runSubmit(cmd *cobra.Command, o *order, text string) error {
	if err := o.fill(cmd); err != nil {
		return err
	}
	if cmd.Flags().Changed("workspace") && len(o.with)+len(o.git) > 0 {
		return render.Usagef("--workspace, and --with or --git: give only one of them")
	}
	if err := o.delay(c.Options.Now()); err != nil {
		return err
	}
	var err error
	if o.task.Files, err = render.FirstFiles(o.with, o.git); err != nil {
		return err
	}
	if text == render.FromInput {
		o.task.Input = messages.TextInput("-") // so that everything else is checked before the user types
		if err := o.task.Validate(); err != nil {
			return render.Misuse(err)
		}
		data, err := render.ReadInput(cmd.Context(), cmd.InOrStdin(), messages.MaxInput)
		if err != nil {
			return err
		}
		text = string(data)
	}
	if o.task.Input, err = render.Attach(cmd, text, o.attach); err != nil {
		return err
	}
	if err := o.task.Validate(); err != nil {
		return render.Misuse(err)
	}
	return c.With(cmd.Context(), func(client *dispatcher.Client) error {
		if err := o.upload(cmd, client); err != nil {
			return render.OneLine(err)
		}
		id, err := client.Submit(cmd.Context(), o.task)
		run := messages.Ref{Tenant: o.Tenant, Run: id}
		if err != nil {
			run.Run = o.task.ID
			return render.Explain(err, run)
		}
		if o.Output.JSON {
			return c.WriteJSON(cmd, control.SubmitReply{ID: id})
		}
		if err := render.Write(cmd.OutOrStdout(), id+"\n"); err != nil {
			return err
		}
		return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("watch it with `%s`\n", render.Command("watch", run))+render.SeeIt(c.Options.Console, run))
	})
}

// upload takes the folder of --workspace to the fleet.
func (o *order) upload(cmd *cobra.Command, client *dispatcher.Client) error {
	if !cmd.Flags().Changed("workspace") {
		return nil
	}
	f, err := folder.Scan(cmd.Context(), o.folder)
	if err != nil {
		return err
	}
	out := cmd.ErrOrStderr()
	o.task.Manifest, err = f.Send(cmd.Context(), client, o.Tenant, out, render.IsTerminal(out))
	return errors.Join(err, f.Close())
}

// fill puts what the flags say into the task. A flag that is given counts, also when it is empty: a script's empty
// variable must not become a default.
func (o *order) fill(cmd *cobra.Command) error {
	for _, f := range []struct{ name, value string }{
		{"tenant", o.Tenant}, {"id", o.task.ID}, {"agent", o.task.Agent}, {"session", o.task.Session}, {"named-workspace", o.task.Workspace},
	} {
		if cmd.Flags().Changed(f.name) && !strict.ValidToken(f.value) {
			return render.Usagef("--%s: must be 1 to 64 characters of A-Z a-z 0-9 _ -", f.name)
		}
	}
	if cmd.Flags().Changed("priority") && o.priority == "" {
		return render.Usagef("--priority: must be high, normal or low")
	}
	if cmd.Flags().Changed("max-steps") {
		if o.maxSteps == 0 {
			return render.Usagef("--max-steps: must be at least 1")
		}
		o.task.Limits = &messages.Limits{MaxSteps: o.maxSteps}
	}
	if cmd.Flags().Changed("context") {
		o.task.Context = json.RawMessage(strings.TrimSpace(o.context))
		if len(o.task.Context) == 0 {
			return render.Usagef("--context: must be an object")
		}
	}
	if cmd.Flags().Changed("webhook") {
		o.task.Webhook = &messages.Webhook{URL: o.webhook}
	}
	if cmd.Flags().Changed("requires") && strings.TrimSpace(o.requires) == "" {
		return render.Usagef("--requires: must be labels such as gpu=true,zone=a; leave it out for any worker")
	}
	o.task.Tenant, o.task.Priority = o.Tenant, messages.Priority(o.priority)
	var err error
	if o.task.Requires, err = messages.ParseLabels(o.requires); err != nil {
		return render.Usagef("--requires: %v", err)
	}
	o.task.Labels, err = parseLabels(o.labels)
	return err
}

func parseLabels(given []string) (map[string]string, error) {
	if len(given) == 0 {
		return nil, nil
	}
	labels := make(map[string]string, len(given))
	for _, l := range given {
		key, value, ok := strings.Cut(l, "=")
		if !ok || key == "" {
			return nil, render.Usagef("--label: %q is not key=value", strict.Clip(l, 64))
		}
		if _, twice := labels[key]; twice {
			return nil, render.Usagef("--label: %q is given twice", strict.Clip(key, 64))
		}
		labels[key] = value
	}
	return labels, nil
}

// delay reads --at and --in.
func (o *order) delay(now time.Time) error {
	var at time.Time
	switch {
	case o.at != "" && o.in != "":
		return render.Usagef("--at and --in: give only one of them")
	case o.at != "":
		t, err := time.Parse(time.RFC3339, o.at)
		if err != nil {
			return render.Usagef("--at: must be a time such as 2026-12-31T08:00:00+01:00")
		}
		at = t
	case o.in != "":
		d, err := time.ParseDuration(o.in)
		if err != nil || d < 0 || d > messages.MaxDelay {
			return render.Usagef("--in: must be a duration such as 10m, at most a year")
		}
		at = now.Add(d)
	default:
		return nil
	}
	o.task.NotBefore = &at
	return nil
}
