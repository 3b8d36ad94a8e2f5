package command

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
)

// runFlags are those of `longshore run`.
type runFlags struct {
	process *Process

	agent, session, agents, workspace, tenant string
	output                                    render.Format
	maxSteps                                  int
	files                                     []string
	attach, with, git                         []string
	scratch                                   bool // the files are removed at the end
	yes, overwrite                            bool // of what a fleet elsewhere has changed in the workspace
	console                                   bool
	page                                      string // where the console of the fleet in this process is, if it was asked for
	ask                                       *report.Asker
}

// runCommand is `longshore run`.
func (p *Process) runCommand() *cobra.Command {
	f := runFlags{process: p}
	cmd := &cobra.Command{
		Use: "run [TEXT|-]", Short: "Run a task to its end and print its result",
		Long: "Run one task, or the tasks of --file, and show the steps as they happen. Results go to stdout, steps to stderr.\n" +
			"With NATS_URL or LONGSHORE_URL it uses that fleet; otherwise it starts one in this process until the run has ended.\n\n" +
			"With a fleet elsewhere --workspace uploads the folder, without what .longshoreignore and .gitignore list, links, and what looks\n" +
			"like a secret. At the end it shows what the run has changed, and asks before it writes any of it.\n\n" +
			"It exits with 0 if every run completed, 1 if one failed, 2 if the command line was wrong.",
		Example: "  longshore run \"Write a haiku about harbours into haiku.txt\" --workspace .\n" +
			"  longshore run --agents deploy/examples/agents --file deploy/examples/tasks/haiku.json",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return errors.New("give the task as one argument, in quotes")
			case len(args) == 0 && len(f.attach) > 0:
				return errors.New("--attach goes with the text of a task: longshore run \"TEXT\" --attach FILE")
			case len(args) == 0 && len(f.with) > 0:
				return errors.New("--with goes with the text of a task: longshore run \"TEXT\" --with FILE; a task of --file has files of its own")
			case len(args) == 0 && len(f.git) > 0:
				return errors.New("--git goes with the text of a task: longshore run \"TEXT\" --git URL@COMMIT; a task of --file has files of its own")
			case len(f.with) > 0 && f.workspace != "":
				return errors.New("--with and --workspace: the run works in that folder as it is; put the file there")
			case len(f.git) > 0 && f.workspace != "":
				return errors.New("--git and --workspace: the run works in that folder as it is; check the commit out there")
			case len(args) == 0 && len(f.files) == 0:
				return errors.New("give a task: longshore run \"TEXT\"")
			case len(args) == 1 && len(f.files) > 0:
				return errors.New("give either a task or --file, not both")
			default:
				return nil
			}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			tasks, err := f.tasks(cmd, args)
			if err != nil {
				return err
			}
			client, done, err := f.fleet(cmd)
			if err != nil {
				return err
			}
			work := f.watch
			if f.workspace != "" && f.process.fleetElsewhere() {
				work = f.workElsewhere
			}
			return errors.Join(work(cmd, client, tasks), done())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.agent, "agent", "", "agent that works the task (default \"default\")")
	flags.StringVar(&f.session, "session", "", "name of the conversation that the task belongs to")
	flags.StringVar(&f.tenant, "tenant", "", "tenant of the task (default \"default\")")
	flags.IntVar(&f.maxSteps, "max-steps", 0, "maximum number of steps (default: the agent's)")
	flags.StringVar(&f.workspace, "workspace", "", "folder to work in: directly, or with a fleet elsewhere on a copy whose changes are brought back")
	flags.BoolVar(&f.yes, "yes", false, "with a fleet elsewhere: write the changes of a run that has completed to --workspace without asking")
	flags.BoolVar(&f.overwrite, "overwrite", false, "with a fleet elsewhere: also replace files of --workspace that changed here meanwhile")
	flags.StringVar(&f.agents, "agents", "", "folder with agent definitions; only with the fleet in this process")
	flags.StringArrayVarP(&f.files, "file", "f", nil, "JSON file with a task, or - for standard input; may be repeated")
	flags.StringArrayVar(&f.attach, "attach", nil, render.AttachHelp)
	flags.StringArrayVar(&f.with, "with", nil, render.WithHelp)
	flags.StringArrayVar(&f.git, "git", nil, render.GitHelp)
	flags.BoolVar(&f.console, "console", false, "print the address of the run in the console, which is served until the run has ended")
	f.output.Register(cmd)
	return cmd
}

// watch runs the tasks and shows how they go.
func (f *runFlags) watch(cmd *cobra.Command, client *dispatcher.Client, tasks []messages.Task) error {
	steps, results := cmd.ErrOrStderr(), cmd.OutOrStdout()
	options := f.process.terminal(steps, results)
	if in, ok := cmd.InOrStdin().(*os.File); ok && render.IsTerminal(in) && render.IsTerminal(steps) {
		f.ask = report.NewAsker(in)
		options.Ask = f.ask
	}
	if !f.process.fleetElsewhere() {
		options.Ephemeral, options.Console = true, f.page
		options.Advice = "; but the fleet in this process ends with it now: run it on a terminal, or with a fleet that stays (NATS_URL or LONGSHORE_URL)"
	}
	return report.RunTasks(cmd.Context(), client, tasks, steps, results, options, f.output.JSON)
}
