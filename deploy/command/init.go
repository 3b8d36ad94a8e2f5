package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/bus"
)

// maxNATSConfig bounds a file of a configuration, in bytes.
const maxNATSConfig = 1 << 20

type initFlags struct {
	partitions int
	move       bool
	config     string
	json       *bool
}

// initCommand is `longshore init`.
func (p *Process) initCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use: "init", Short: "Make the streams of a fleet, and divide logs and queue over several",
		Long: "Make the streams of a fleet on a NATS server, or check those that exist. A dispatcher does the same when it starts; this command\n" +
			"is for a fleet whose logs of runs and whose queue are to be in more than one stream each. A stream has one leader, which stores all\n" +
			"that comes to it; with several streams the leaders are on several servers of the cluster. Dispatchers and workers find out by themselves how many\n" +
			"there are.\n\n" +
			"Choose the number before the first dispatcher starts. It can be changed with --move, with all dispatchers and workers stopped, once\n" +
			"neither logs nor tasks are stored: the runs have ended and their retention has passed.\n\n" +
			"Users with permissions of their own need those for the new streams. --nats-config prints a NATS configuration such as\n" +
			"deploy/nats/longshore.conf with these, and connects to nothing.\n\n" +
			"It needs the NATS user of a dispatcher and is configured like one: `longshore dispatcher --help`.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.initialize(cmd, &f) },
	}
	set := cmd.Flags()
	set.IntVar(&f.partitions, "partitions", 0, fmt.Sprintf("in how many streams the logs of runs are, and in how many the queue is: 1 to %d; 0: as it is, 1 in a new fleet", bus.MaxPartitions))
	set.BoolVar(&f.move, "move", false, "change the number in a fleet that exists, if neither logs nor tasks are stored")
	set.StringVar(&f.config, "nats-config", "", "print this file with the permissions for the streams")
	f.json = render.OutputFlag(cmd)
	return cmd
}

func (p *Process) initialize(cmd *cobra.Command, f *initFlags) error {
	if f.partitions < 0 || f.partitions > bus.MaxPartitions {
		return render.Usagef("--partitions: must be 0 to %d", bus.MaxPartitions)
	}
	if f.config != "" {
		return f.permissions(cmd)
	}
	if err := settings.NeedNATS(p.Environ(), "the streams of a fleet are made on its NATS server"); err != nil {
		return err
	}
	var s settings.Dispatcher
	if err := settings.Load(&s, p.Environ()); err != nil {
		return err
	}
	log, err := logger(cmd, s.Logs, settings.Secrets(s))
	if err != nil {
		return err
	}
	nc, err := fleet.Connect(cmd.Context(), s.NATS, "longshore init", log)
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := f.setup(cmd, nc, s.Streams()); err != nil {
		return err
	}
	division, err := bus.FindDivision(cmd.Context(), nc)
	if err != nil {
		return err
	}
	n := division[bus.StreamRuns]
	made := initialized{Partitions: n, Streams: partitions(bus.StreamRuns, n), Queue: partitions(bus.StreamTasks, division[bus.StreamTasks])}
	if *f.json {
		return render.WriteJSON(cmd, made, p.raw())
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "The streams are there. Tasks are in %s. Logs of runs are in %s.\n",
		strings.Join(made.Queue, ", "), strings.Join(made.Streams, ", "))
	return err
}

// initialized is what the command writes as JSON.
type initialized struct {
	Partitions int      `json:"partitions"`
	Streams    []string `json:"streams"` // with the logs of runs
	Queue      []string `json:"queue"`   // with tasks
}

// partitions are the names of those of a stream.
func partitions(stream string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = bus.PartitionName(stream, i, n)
	}
	return names
}

// setup makes the streams, and first removes those of another number if that was asked for.
func (f *initFlags) setup(cmd *cobra.Command, nc *nats.Conn, want bus.Streams) error {
	want.Partitions = f.partitions
	err := bus.Setup(cmd.Context(), nc, want)
	if _, other := errors.AsType[*bus.PartitionsError](err); other && f.move {
		if err := bus.Redivide(cmd.Context(), nc); err != nil {
			return fmt.Errorf("divide the streams anew: %w", err)
		}
		err = bus.Setup(cmd.Context(), nc, want)
	}
	if err != nil {
		return fmt.Errorf("set up streams: %w", err)
	}
	return nil
}

// permissions prints a configuration for so many streams.
func (f *initFlags) permissions(cmd *cobra.Command) error {
	config, err := render.ReadFile(cmd, f.config, maxNATSConfig)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(cmd.OutOrStdout(), bus.DividePermissions(string(config), f.partitions)); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
