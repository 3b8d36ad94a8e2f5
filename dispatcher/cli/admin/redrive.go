package admin

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// amendment is what the flags of dead redrive say.
type amendment struct {
	deadFlags
	edit  string
	set   []string
	newID string
}

func (c deadLetters) redriveDead() *cobra.Command {
	var m amendment
	cmd := &cobra.Command{
		Use: "redrive [LETTER…]", Short: "Send dead letters again",
		Long: "Send dead letters again and remove them. A task becomes a new run, with the label " + control.LabelRedriven + "; a webhook is\n" +
			"delivered again under its own id. Redriving a letter twice has no further effect.",
		Example: "  longshore dead redrive 12\n  longshore dead redrive 12 --set agent=writer\n  longshore dead redrive --code poison --since 2h",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := m.chosen(args); err != nil {
				return err
			}
			edited := m.edit != "" || len(m.set) > 0 || m.newID != ""
			if edited && len(args) != 1 {
				return render.Usagef("--edit, --set and --new-id are for one letter")
			}
			if m.filtered() {
				return c.everyDead(cmd, &m.deadFlags, dispatcher.DeadLetters.RedriveAll)
			}
			requests, err := m.each(args)
			if err != nil {
				return err
			}
			task, err := m.task(cmd)
			if err != nil {
				return err
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				for _, one := range requests {
					if err := c.redriveOne(cmd, client, &m, control.DeadRedrive{DeadRequest: one, Task: task, NewID: m.newID}); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	m.registerFilter(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&m.all, "all", false, "all letters of the tenant")
	flags.StringVar(&m.edit, "edit", "", "a file with the corrected task, or - for standard input")
	flags.StringArrayVar(&m.set, "set", nil, "field=value of the task, as JSON or as text; null removes it; may be repeated")
	flags.StringVar(&m.newID, "new-id", "", "id of the new run (default: derived from the letter)")
	return cmd
}

func (c deadLetters) redriveOne(cmd *cobra.Command, client *dispatcher.Client, m *amendment, req control.DeadRedrive) error {
	if len(m.set) > 0 {
		body := req.Task
		if len(body) == 0 {
			l, err := client.DeadLetters().Get(cmd.Context(), req.DeadRequest)
			if err != nil {
				return explainDead(err, m.Tenant)
			}
			body = l.Task
		}
		var err error
		if req.Task, err = setFields(body, m.set); err != nil {
			return err
		}
	}
	done, err := client.DeadLetters().Redrive(cmd.Context(), req)
	if err != nil {
		return explainDead(err, m.Tenant)
	}
	return c.told(cmd, &m.deadFlags, control.DeadBulk{Redriven: []control.DeadRedriven{*done}})
}

// task is the task of --edit; nil without.
func (m *amendment) task(cmd *cobra.Command) (json.RawMessage, error) {
	if m.edit == "" {
		return nil, nil
	}
	data, err := render.ReadTask(cmd, m.edit)
	if err != nil {
		return nil, err
	}
	if _, err := messages.DecodeTask(data); err != nil {
		return nil, render.Misuse(fmt.Errorf("--edit: %w", err))
	}
	return data, nil
}

// setFields changes fields of a task.
func setFields(body []byte, set []string) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, render.Usagef("--set: the body of the letter is not a JSON object: give the whole task with --edit")
	}
	for _, s := range set {
		name, value, ok := strings.Cut(s, "=")
		switch {
		case !ok || name == "":
			return nil, render.Usagef("--set: %q is not field=value", strict.Clip(s, 64))
		case value == "null":
			delete(fields, name)
		case json.Valid([]byte(value)):
			fields[name] = json.RawMessage(value)
		default:
			text, err := json.Marshal(value)
			if err != nil {
				return nil, fmt.Errorf("--set: %w", err)
			}
			fields[name] = text
		}
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("--set: %w", err)
	}
	if _, err := messages.DecodeTask(out); err != nil {
		return nil, render.Misuse(err)
	}
	return out, nil
}
