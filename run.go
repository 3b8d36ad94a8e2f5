package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/messages"
)

// runFlags are those of `longshore run`.
type runFlags struct {
	agent, session, agents, workspace, tenant, output string
	maxSteps                                          int
	files                                             []string
	scratch                                           bool // nobody wants the files
}

func runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "run [TEXT|-]", Short: "Run a task from start to end and print its result",
		Long: "Run one task, or the tasks of --file, and show the steps as they happen. Results go to stdout, steps to stderr.\n" +
			"With NATS_URL the fleet there does it; else one is started in this process for as long as it takes.\n\n" +
			"It ends with 0 when every run completed, 1 when one failed, 2 when it was asked for something impossible.",
		Example: "  longshore run \"Write a haiku about harbours into haiku.txt\" --workspace .\n" +
			"  longshore run --agents deploy/examples/agents --file deploy/examples/tasks/haiku.json",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return errors.New("give the task as one argument, in quotes")
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
			err = f.watch(cmd, client, tasks)
			if cmd.Context().Err() != nil && os.Getenv("NATS_URL") == "" {
				err = errInterrupted
			}
			return errors.Join(err, done())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.agent, "agent", "", "agent that works the task (default \"default\")")
	flags.StringVar(&f.session, "session", "", "name of the conversation that the task belongs to")
	flags.StringVar(&f.tenant, "tenant", "", "whose task it is (default \"default\")")
	flags.IntVar(&f.maxSteps, "max-steps", 0, "steps at most (default: the agent's)")
	flags.StringVar(&f.workspace, "workspace", "", "folder to work in, in place; only with the fleet in this process")
	flags.StringVar(&f.agents, "agents", "", "folder with agent definitions; only with the fleet in this process")
	flags.StringArrayVarP(&f.files, "file", "f", nil, "JSON file with a task; may be repeated")
	flags.StringVarP(&f.output, "output", "o", "text", "text or json")
	return cmd
}

func (f *runFlags) watch(cmd *cobra.Command, client *dispatcher.Client, tasks []messages.Task) error {
	steps, results := cmd.ErrOrStderr(), cmd.OutOrStdout()
	options := terminal(steps, results)
	if in, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(in.Fd())) && isTerminal(steps) {
		options.Ask = cli.NewAsker(in)
	}
	if os.Getenv("NATS_URL") == "" {
		options.Advice = "; but the fleet in this process ends with it now: run it on a terminal, or with a fleet that stays (NATS_URL)"
	}
	return cli.RunTasks(cmd.Context(), client, tasks, steps, results, options, f.output == "json")
}

// tasks are those to run, checked.
func (f *runFlags) tasks(cmd *cobra.Command, args []string) ([]messages.Task, error) {
	if cmd.Flags().Changed("max-steps") && f.maxSteps < 1 {
		return nil, usageError("--max-steps must be at least 1")
	}
	if f.output != "text" && f.output != "json" {
		return nil, usageError("--output must be text or json")
	}
	if os.Getenv("NATS_URL") != "" && (f.workspace != "" || f.agents != "") {
		return nil, usageError("--workspace and --agents need the fleet in this process: unset NATS_URL")
	}
	if f.workspace != "" {
		if info, err := os.Stat(f.workspace); err != nil || !info.IsDir() {
			return nil, usageError("--workspace " + f.workspace + " is not a folder")
		}
	}
	var tasks []messages.Task
	for _, file := range f.files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, usageError("read task: " + err.Error())
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
			data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), messages.MaxInput+1))
			if err != nil {
				return nil, fmt.Errorf("read the task: %w", err)
			}
			text = string(data)
		}
		tasks = append(tasks, messages.Task{Input: messages.TextInput(text)})
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

// fleet is a client of the fleet that NATS_URL names, or of one that is started here; done ends it.
func (f *runFlags) fleet(cmd *cobra.Command) (*dispatcher.Client, func() error, error) {
	if os.Getenv("NATS_URL") != "" {
		c, closeConn, err := connect(cmd.Context())
		return c, func() error { closeConn(); return nil }, err
	}
	cfg := fleet.DevConfig{NATSAddr: embedded.NoListen, Agents: f.agents, Workspace: f.workspace, Abrupt: true}
	if f.workspace == "" {
		dir, err := os.MkdirTemp("", "longshore-files-")
		if err != nil {
			return nil, nil, fmt.Errorf("make a folder for files: %w", err)
		}
		cfg.Worker.Workspaces = dir
	}
	dev, err := startDev(cmd, &cfg, "error")
	if err != nil {
		return nil, nil, err
	}
	sayScripted(cmd, dev)
	stop := func() error { return errors.Join(dev.Stop(), keepFiles(cmd, cfg.Worker.Workspaces)) }
	if f.scratch {
		stop = func() error { return errors.Join(dev.Stop(), os.RemoveAll(cfg.Worker.Workspaces)) }
	}
	c, err := dev.Client(cmd.Context())
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return c, stop, nil
}

// evalFleet is the fleet that a suite runs on: as that of `longshore run`.
func evalFleet(cmd *cobra.Command, agents string) (*dispatcher.Client, func() error, error) {
	if os.Getenv("NATS_URL") != "" && agents != "" {
		return nil, nil, usageError("--agents needs the fleet in this process: unset NATS_URL")
	}
	f := runFlags{agents: agents, scratch: true}
	return f.fleet(cmd)
}

// keepFiles says where the files of runs are, or removes their folder when there are none.
func keepFiles(cmd *cobra.Command, dir string) error {
	if dir == "" {
		return nil
	}
	files := 0
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files++
		}
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("look for files in %s: %w", dir, err)
	case files == 0:
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove %s: %w", dir, err)
		}
		return nil
	default:
		fmt.Fprintf(cmd.ErrOrStderr(), "Files are in %s; --workspace DIR works in a folder of yours.\n", dir)
		return nil
	}
}
