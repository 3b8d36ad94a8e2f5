package runs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func (c runs) fork() *cobra.Command {
	s := conn.OfRun{Changes: true}
	var req control.ForkRequest
	var agent string
	cmd := &cobra.Command{
		Use:   "fork ID --at STEP",
		Short: "Make a new run that continues another one from a step",
		Long: "Make a new run that keeps another run's steps before STEP and redoes that step, with another\n" +
			"model or agent if one is given. The kept steps are not paid for again, and their tool calls are not\n" +
			"repeated. The new run starts with the files of the kept steps, if they were saved. The id of the new run is printed.\n\n" +
			"With --call the new run asks a person again what a call of STEP asked: give it another answer or decision.",
		Args: s.One(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := fillFork(cmd, &req, agent); err != nil {
				return err
			}
			return c.WithRun(cmd, &s, args, func(client *dispatcher.Client, run messages.Ref) error {
				reply, err := client.Runs().Fork(cmd.Context(), run, req)
				switch {
				case err != nil:
					return explainFork(err, run)
				case s.Output.JSON:
					return c.WriteJSON(cmd, reply)
				}
				if err := render.Write(cmd.OutOrStdout(), reply.ID+"\n"); err != nil {
					return err
				}
				return render.Write(cmd.ErrOrStderr(), forkNote(reply, run))
			})
		},
	}
	s.Register(cmd)
	flags := cmd.Flags()
	flags.IntVar(&req.At, "at", 0, "the first step to redo, from 1")
	flags.StringVar(&req.Call, "call", "", "keep STEP too, until this call of it waited for a person: the new run asks again")
	flags.StringVar(&agent, "agent", "", "another agent that continues the run: NAME, or NAME@REVISION for an earlier revision")
	flags.StringVar(&req.Model, "model", "", "another model that continues the run")
	flags.StringVar(&req.NewID, "id", "", "id of the new run; a new one by default")
	if err := cmd.MarkFlagRequired("at"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// fillFork checks what the flags say.
func fillFork(cmd *cobra.Command, req *control.ForkRequest, agent string) error {
	name, revision, at := strings.Cut(agent, "@")
	if at {
		n, err := strconv.ParseUint(revision, 10, 64)
		if err != nil || n == 0 {
			return render.Usagef("--agent: the revision after @ must be a number from 1")
		}
		req.Revision = n
	}
	req.Agent = name
	for flag, value := range map[string]string{"agent": name, "call": req.Call, "model": req.Model, "id": req.NewID} {
		if cmd.Flags().Changed(flag) && value == "" {
			return render.Usagef("--%s: is empty", flag)
		}
	}
	return render.Misuse(forkFlag(req.Check()))
}

// forkFlag names a field of a fork as its flag is named.
func forkFlag(err error) error {
	field, ok := errors.AsType[*messages.FieldError](err)
	if !ok {
		return err
	}
	name := map[string]string{"newId": "id", "revision": "agent"}[field.Field]
	if name == "" {
		name = field.Field
	}
	return &messages.FieldError{Field: "--" + name, Reason: field.Reason}
}

func explainFork(err error, run messages.Ref) error {
	if errors.Is(err, dispatcher.ErrConflict) {
		if p, ok := errors.AsType[*messages.Problem](err); ok {
			return render.Worded(render.Visible(fmt.Sprintf("fork run %s: %s", run.Run, p.Detail)), err)
		}
	}
	return render.Explain(forkFlag(err), run)
}

func forkNote(r *control.ForkReply, from messages.Ref) string {
	kept := "No step is kept"
	if n := r.From.Step - 1; n > 0 {
		kept = render.Count(int64(n), "step") + " of run " + from.Run + " kept, with the files that were saved in them"
	}
	run := messages.Ref{Tenant: r.Tenant, Run: r.ID}
	return render.Visible(kept+".") + "\n" +
		fmt.Sprintf("watch it with `%s`\n", render.Command("watch", run))
}
