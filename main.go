// Command longshore runs a fleet of AI agents and talks to one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/longshore-run/longshore/deploy/command/audit"
	"github.com/longshore-run/longshore/deploy/command/doctor"
	"github.com/longshore-run/longshore/deploy/command/replay"
	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/agents"
	"github.com/longshore-run/longshore/dispatcher/cli"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/observability"
)

// version is set by the linker.
var version = "0.1.0-dev"

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitSignal = 130
)

func main() {
	ctx, stop := untilSignal()
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// untilSignal returns a context that ends at the first SIGINT or SIGTERM. The second ends the process at once.
func untilSignal() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitSignal)
	}()
	return ctx, cancel
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := commands(stdout, stderr)
	cli.Group(root)
	cli.Usage(root)
	root.SetArgs(args)
	return exitCode(ctx, root.ExecuteContext(ctx), stderr)
}

// commands are all that there are.
func commands(stdout, stderr io.Writer) *cobra.Command {
	raw := !isTerminal(stdout)
	root := &cobra.Command{
		Use: "longshore", Short: "A dispatch hall for AI agents",
		Long: "Longshore takes tasks from backends, puts them on NATS JetStream, and has a fleet of workers run the\n" +
			"agents that do them. Every step is an event. Try: longshore run \"Write a haiku into haiku.txt\"",
		Version: version, SilenceUsage: true, SilenceErrors: true,
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(devCommand(), dispatcherCommand(), workerCommand(), runCommand())
	root.AddCommand(cli.Version(version, raw))
	root.AddCommand(fleet.PricesCommand(os.Getenv, raw))
	root.AddCommand(fleet.WebhookKeyCommand(os.Environ, raw))
	root.AddCommand(fleet.HealthCommand(os.Environ, raw))
	root.AddCommand(cli.Commands(connect, terminal(stderr, stdout))...)
	root.AddCommand(replay.Command(connect, raw))
	root.AddCommand(doctor.Command(doctor.Config{Environ: os.Environ, Version: version, Raw: raw}))
	root.AddCommand(audit.Command(version, os.Environ, raw))
	forEval := terminal(stderr, stdout)
	forEval.Ephemeral = !fleetElsewhere()
	root.AddCommand(cli.Eval(evalFleet, forEval))
	return root
}

// exitCode prints an error, once and in one line, and says how the process ends.
func exitCode(ctx context.Context, err error, stderr io.Writer) int {
	var (
		ended  *cli.Interrupted
		usage  *cli.UsageError
		set    *settings.Error
		failed *cli.RunFailed
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &failed): // its report is the message
		return exitFailed
	case errors.As(err, &ended):
		fmt.Fprintln(stderr, err)
		return exitSignal
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "Interrupted.")
		return exitSignal
	case errors.As(err, &usage), errors.As(err, &set), errors.Is(err, dispatcher.ErrUnknownAgent):
		fmt.Fprintln(stderr, "longshore:", err)
		return exitUsage
	default:
		fmt.Fprintln(stderr, "longshore:", err)
		if p, ok := errors.AsType[*messages.Problem](err); ok && p.Code == messages.CodeUnauthenticated {
			fmt.Fprintln(stderr, "Set LONGSHORE_API_KEY to a key of this fleet: `longshore keys api create` makes one.")
		}
		return exitFailed
	}
}

// connect opens a client by the environment.
func connect(ctx context.Context) (*dispatcher.Client, func(), error) {
	var s settings.Client
	if err := settings.Load(&s, os.Environ()); err != nil {
		return nil, nil, err
	}
	if s.API != "" {
		c, err := dispatcher.NewHTTP(s.API, s.Key)
		if field, ok := errors.AsType[*messages.FieldError](err); ok {
			variable := map[string]string{"address": "LONGSHORE_URL", "key": "LONGSHORE_API_KEY"}[field.Field]
			return nil, nil, usageError(variable + ": " + field.Reason)
		}
		if err != nil {
			return nil, nil, err
		}
		return c, c.Close, nil
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	nc, err := fleet.Connect(ctx, s.NATS, fleet.Client, log)
	if err != nil {
		return nil, nil, err
	}
	var c *dispatcher.Client
	if s.Scoped {
		c, err = dispatcher.NewTenant(ctx, nc, s.Tenant)
	} else {
		c, err = dispatcher.New(ctx, nc)
	}
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return c, nc.Close, nil
}

func logger(cmd *cobra.Command, s settings.Logs, secrets []string) (*slog.Logger, error) {
	return observability.NewLogger(cmd.ErrOrStderr(), observability.LogConfig{Level: s.Level, Format: s.Format, Redact: secrets})
}

// terminal says how text is shown: steps on stderr, results on stdout.
func terminal(stderr, stdout io.Writer) cli.Options {
	_, noColor := os.LookupEnv("NO_COLOR")
	tty := isTerminal(stderr) && os.Getenv("TERM") != "dumb"
	return cli.Options{Terminal: tty, Color: tty && !noColor, Raw: !isTerminal(stdout), User: os.Getenv("USER"), Tenant: os.Getenv("LONGSHORE_TENANT"), Width: func() int { return width(stderr) }, Leaks: fleet.Leaks(os.Environ)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// unknownWidth is taken for a terminal that does not say how wide it is.
const unknownWidth = 80

func width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return unknownWidth
}

func dispatcherCommand() *cobra.Command {
	return &cobra.Command{
		Use: "dispatcher", Short: "Run a dispatcher: the service that clients ask, and the keeper of the streams",
		Long: "Run a dispatcher process. It is configured by its environment:\n\n" + settings.Describe(&settings.Dispatcher{}),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s settings.Dispatcher
			if err := settings.Load(&s, os.Environ()); err != nil {
				return err
			}
			defer keepHeap(cmd.Context(), 0)()
			log, err := logger(cmd, s.Logs, settings.Secrets(s))
			if err != nil {
				return err
			}
			return fleet.Dispatcher(cmd.Context(), s, version, log, nil)
		},
	}
}

func workerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "worker", Short: "Run a worker: a member of the fleet that works tasks",
		Long: "Run a worker process. It is configured by its environment:\n\n" + settings.Describe(&settings.Worker{}),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s settings.Worker
			if err := settings.Load(&s, os.Environ()); err != nil {
				return err
			}
			if s.Name == "" {
				s.Name = fleet.WorkerName()
			}
			defer keepHeap(cmd.Context(), s.Slots)()
			log, err := logger(cmd, s.Logs, settings.Secrets(s))
			if err != nil {
				return err
			}
			return runWorker(cmd, s, log)
		},
	}
}

// runWorker runs a worker. Its log says what its end waits for; a person at a terminal is told in a sentence.
func runWorker(cmd *cobra.Command, s settings.Worker, log *slog.Logger) error {
	ctx, w := cmd.Context(), cmd.ErrOrStderr()
	if !isTerminal(w) {
		return fleet.Worker(ctx, s, version, log, fleet.Parts{}, nil)
	}
	held, done := make(chan func() int, 1), make(chan error, 1)
	go func() {
		done <- fleet.Worker(ctx, s, version, log, fleet.Parts{Begun: func(count func() int) { held <- count }}, nil)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case count := <-held:
		sayStopping(w, count(), s.DrainTimeout, "with another worker")
	default: // it has not begun
	}
	return <-done
}

func devCommand() *cobra.Command {
	var cfg fleet.DevConfig
	var readyFile string
	cmd := &cobra.Command{
		Use: "dev", SuggestFor: []string{"start", "serve", "up"}, Short: "Run the whole fleet in one process, with NATS and a Redis-compatible store inside",
		Long: "Run dispatcher, worker, NATS and a Redis-compatible store in one process. Workers and clients of other\n" +
			"processes can connect to it. The store behind the Redis address is in memory; queue and logs are in --data.\n\n" +
			"Its environment, where that is not said by a flag:\n\n" + settings.Describe(&settings.Dev{}),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := removeReady(readyFile); err != nil {
				return usageError("--ready-file: " + err.Error())
			}
			if err := freeAddresses(cmd, &cfg); err != nil {
				return err
			}
			dev, err := startDev(cmd, &cfg, "info")
			if err != nil {
				return err
			}
			if readyFile != "" {
				if err := writeReady(readyFile, dev); err != nil {
					return errors.Join(err, dev.Stop())
				}
			}
			sayReady(cmd, &cfg, dev)
			slots := 0
			if !cfg.NoWorker {
				slots = cfg.Worker.Slots
				sayScripted(cmd, dev)
			}
			defer keepHeap(cmd.Context(), slots)()
			err = dev.Keep(cmd.Context(), &cfg)
			if cmd.Context().Err() != nil {
				sayStopping(cmd.ErrOrStderr(), dev.Held(), cfg.Worker.DrainTimeout, "at the next start")
			}
			return errors.Join(err, dev.Stop())
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.HTTPAddr, "addr", "127.0.0.1:8420", "address for HTTP; port 0 picks a free one")
	f.StringVar(&cfg.NATSAddr, "nats-addr", "127.0.0.1:4222", "address for NATS")
	f.StringVar(&cfg.RedisAddr, "redis-addr", "127.0.0.1:6379", "address for the Redis-compatible store")
	f.StringVar(&cfg.Dir, "data", "longshore-data", "folder for queue, logs and files")
	f.IntVar(&cfg.Worker.Slots, "slots", 0, "runs worked at once (default LONGSHORE_SLOTS)")
	f.BoolVar(&cfg.NoWorker, "no-worker", false, "leave the worker out")
	f.StringVar(&cfg.Agents, "agents", "", "folder with agent definitions")
	f.StringVar(&readyFile, "ready-file", "", "file to write the addresses to once everything accepts work")
	return cmd
}

// freeAddresses moves what would listen on a taken port to the next free one, unless its flag was given.
func freeAddresses(cmd *cobra.Command, cfg *fleet.DevConfig) error {
	for _, a := range []struct {
		flag string
		addr *string
	}{{"addr", &cfg.HTTPAddr}, {"nats-addr", &cfg.NATSAddr}, {"redis-addr", &cfg.RedisAddr}} {
		free, err := fleet.FreeAddress(cmd.Context(), "--"+a.flag, *a.addr, cmd.Flags().Changed(a.flag))
		if err != nil {
			return err //nolint:wrapcheck // it names the flag
		}
		if free != *a.addr {
			fmt.Fprintf(cmd.ErrOrStderr(), "--%s: something listens on %s already: using %s\n", a.flag, *a.addr, free)
			*a.addr = free
		}
	}
	return nil
}

// sayReady says where the fleet is and, to a person, what to do next.
func sayReady(cmd *cobra.Command, cfg *fleet.DevConfig, dev *fleet.Dev) {
	w := cmd.ErrOrStderr()
	fmt.Fprintf(w, "longshore is ready: %s://%s, %s, %s\n", dev.Scheme, dev.API, dev.NATS, dev.Redis)
	if !cfg.Access.On() {
		fmt.Fprintln(w, "Authentication is disabled: anyone who reaches these addresses may do everything, for every tenant.")
	}
	if isTerminal(w) {
		fmt.Fprintf(w, "\n  In another terminal:\n    export NATS_URL=%s\n    longshore run \"Say hello\"\n\n  HTTP API: %s://%s   Data: %s   Stop: Ctrl-C\n\n",
			dev.NATS, dev.Scheme, dev.API, cfg.Dir)
	}
}

// sayStopping says what the end of a worker waits for, and how its runs go on.
func sayStopping(w io.Writer, held int, timeout time.Duration, goOn string) {
	runs := fmt.Sprintf("%d runs to end their current step, at most %s; they go on", held, timeout)
	switch held {
	case 0:
		fmt.Fprintln(w, "Stopping: there are no runs to wait for.")
		return
	case 1:
		runs = fmt.Sprintf("1 run to end its current step, at most %s; it goes on", timeout)
	}
	fmt.Fprintf(w, "Stopping: waiting for %s %s. Press Ctrl-C again to end at once.\n", runs, goOn)
}

// startDev starts the fleet in this process by its environment and flags.
func startDev(cmd *cobra.Command, cfg *fleet.DevConfig, level string) (*fleet.Dev, error) {
	var s settings.Dev
	if err := settings.Load(&s, os.Environ()); err != nil {
		return nil, err
	}
	if slots := cfg.Worker.Slots; slots != 0 || cmd.Flags().Changed("slots") {
		s.Slots = slots
		if err := s.Check(); err != nil {
			return nil, usageError("--slots: " + err.Error())
		}
	}
	if cfg.Agents != "" {
		if _, err := agents.Load(cfg.Agents); err != nil {
			return nil, &cli.UsageError{Err: err}
		}
	}
	if os.Getenv("LONGSHORE_LOG_LEVEL") == "" {
		s.Level = level
	}
	w := cmd.ErrOrStderr()
	if isTerminal(w) && os.Getenv("LONGSHORE_LOG_FORMAT") == "" {
		w = observability.Console(w, terminal(w, w).Color)
	}
	log, err := observability.NewLogger(w, observability.LogConfig{Level: s.Level, Format: s.Format, Redact: settings.Secrets(s)})
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the setting
	}
	cfg.Webhooks, cfg.Traces = s.Webhooks, s.Traces
	cfg.Models, cfg.AckWait, cfg.Retention, cfg.Lite, cfg.Version, cfg.Log = s.Models, s.AckWait, s.Retention, s.LiteTimeout, version, log
	cfg.Access, cfg.RunIndex = s.Access, s.RunIndex
	workspaces := cfg.Worker.Workspaces
	cfg.Worker = s.Worker()
	cfg.Worker.Workspaces = workspaces
	return fleet.StartDev(cmd.Context(), *cfg)
}

// keepHeap looks after the collector, unless the operator wants it otherwise, until stop is called.
func keepHeap(ctx context.Context, slots int) (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		fleet.KeepHeap(ctx, slots)
	}()
	return func() {
		cancel()
		<-done
	}
}

func sayScripted(cmd *cobra.Command, dev *fleet.Dev) {
	if dev.Scripted {
		fmt.Fprintln(cmd.ErrOrStderr(), "No model is configured: the built-in script answers. Set OPENAI_API_KEY and OPENAI_MODEL, or ANTHROPIC_API_KEY and ANTHROPIC_MODEL, for a real one.")
	}
}

// removeReady removes the file of a fleet that was here before: who waits for it waits for ours. It looks for its folder too.
func removeReady(file string) error {
	if file == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		return err //nolint:wrapcheck // the caller names the flag
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err //nolint:wrapcheck // the caller names the flag
	}
	return nil
}

// writeReady writes the addresses at once, so that a reader never sees half of them.
func writeReady(file string, dev *fleet.Dev) error {
	body, err := json.Marshal(map[string]string{"api": dev.Scheme + "://" + dev.API, "nats": dev.NATS, "redis": dev.Redis})
	if err != nil {
		return fmt.Errorf("encode addresses: %w", err)
	}
	temp := file + ".tmp"
	if err := os.WriteFile(temp, append(body, '\n'), 0o600); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	if err := os.Rename(temp, file); err != nil {
		return fmt.Errorf("write ready file: %w", err)
	}
	return nil
}

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
			"With NATS_URL or LONGSHORE_URL the fleet there does it; else one is started in this process for as long as it takes.\n\n" +
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
			return errors.Join(f.watch(cmd, client, tasks), done())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.agent, "agent", "", "agent that works the task (default \"default\")")
	flags.StringVar(&f.session, "session", "", "name of the conversation that the task belongs to")
	flags.StringVar(&f.tenant, "tenant", "", "whose task it is (default \"default\")")
	flags.IntVar(&f.maxSteps, "max-steps", 0, "steps at most (default: the agent's)")
	flags.StringVar(&f.workspace, "workspace", "", "folder to work in, in place; only with the fleet in this process")
	flags.StringVar(&f.agents, "agents", "", "folder with agent definitions; only with the fleet in this process")
	flags.StringArrayVarP(&f.files, "file", "f", nil, "JSON file with a task, or - for the standard input; may be repeated")
	flags.StringVarP(&f.output, "output", "o", "text", "text or json")
	return cmd
}

func (f *runFlags) watch(cmd *cobra.Command, client *dispatcher.Client, tasks []messages.Task) error {
	steps, results := cmd.ErrOrStderr(), cmd.OutOrStdout()
	options := terminal(steps, results)
	if in, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(in.Fd())) && isTerminal(steps) {
		options.Ask = cli.NewAsker(in)
	}
	if !fleetElsewhere() {
		options.Ephemeral = true
		options.Advice = "; but the fleet in this process ends with it now: run it on a terminal, or with a fleet that stays (NATS_URL or LONGSHORE_URL)"
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
	if fleetElsewhere() && (f.workspace != "" || f.agents != "") {
		return nil, usageError("--workspace and --agents need the fleet in this process: unset NATS_URL and LONGSHORE_URL")
	}
	if f.workspace != "" {
		if info, err := os.Stat(f.workspace); err != nil || !info.IsDir() {
			return nil, usageError("--workspace " + f.workspace + " is not a folder")
		}
	}
	var tasks []messages.Task
	for _, file := range f.files {
		data, err := cli.ReadTask(cmd, file)
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
			data, err := cli.ReadFile(cmd, text, messages.MaxInput)
			if err != nil {
				return nil, err
			}
			text = string(data)
		}
		tasks = append(tasks, messages.Task{Input: messages.TextInput(text)})
	}
	for i := range tasks {
		t := &tasks[i]
		t.Agent, t.Session, t.Tenant = first(f.agent, t.Agent), first(f.session, t.Session), first(f.tenant, t.Tenant)
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

// fleetElsewhere reports whether the environment names a fleet to use, rather than one in this process.
func fleetElsewhere() bool { return os.Getenv("NATS_URL") != "" || os.Getenv("LONGSHORE_URL") != "" }

func usageError(text string) error { return &cli.UsageError{Err: errors.New(text)} }

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// fleet is a client of the fleet that the environment names, or of one that is started here; done ends it.
func (f *runFlags) fleet(cmd *cobra.Command) (*dispatcher.Client, func() error, error) {
	if fleetElsewhere() {
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
	letGo := keepHeap(cmd.Context(), cfg.Worker.Slots)
	stop := func() error {
		defer letGo()
		if f.scratch {
			return errors.Join(dev.Stop(), os.RemoveAll(cfg.Worker.Workspaces))
		}
		return errors.Join(dev.Stop(), keepFiles(cmd, cfg.Worker.Workspaces))
	}
	c, err := dev.Client(cmd.Context())
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return c, stop, nil
}

// evalFleet is the fleet that a suite runs on: as that of `longshore run`.
func evalFleet(cmd *cobra.Command, agents string) (*dispatcher.Client, func() error, error) {
	if fleetElsewhere() && agents != "" {
		return nil, nil, usageError("--agents needs the fleet in this process: unset NATS_URL and LONGSHORE_URL")
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
