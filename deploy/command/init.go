package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/bus"
)

// divisible is what --divide names, and the streams that have it.
func divisible() map[string]string {
	return map[string]string{"logs": bus.StreamRuns, "events": bus.StreamEvents, "queue": bus.StreamTasks}
}

// maxNATSConfig bounds a file of a configuration, in bytes.
const maxNATSConfig = 1 << 20

type initFlags struct {
	partitions int
	divide     []string
	move       bool
	config     string
	json       *bool
}

// initCommand is `longshore init`.
func (p *Process) initCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use: "init", Short: "Make the streams of a fleet, and divide logs, events and queue over several",
		Long: "Make the streams of a fleet on a NATS server, or check those that exist. A dispatcher does the same when it starts; this command\n" +
			"is for a fleet whose logs of runs, events and queue are to be in more than one stream each. A stream has one leader, which stores all\n" +
			"that comes to it; with several streams the leaders are on several servers of the cluster. Dispatchers and workers find out by\n" +
			"themselves how many there are. What a fleet of an earlier version has in one stream stays there.\n\n" +
			"Choose the number before the first dispatcher starts. It can be changed with --move, with all dispatchers and workers stopped, once\n" +
			"no log, no event and no task is stored: the runs have ended, their retention has passed, and the events have expired.\n\n" +
			"Users with permissions of their own need those for the new streams. --nats-config prints a NATS configuration such as\n" +
			"deploy/nats/longshore.conf with these, and connects to nothing.\n\n" +
			"It needs the NATS user of a dispatcher and is configured like one: `longshore dispatcher --help`.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.initialize(cmd, &f) },
	}
	set := cmd.Flags()
	set.IntVar(&f.partitions, "partitions", 0, fmt.Sprintf("in how many streams logs are, and events, and the queue, or those of --divide: 1 to %d; 0: as it is, 1 in a new fleet", bus.MaxPartitions))
	set.StringSliceVar(&f.divide, "divide", nil, "divide only these, and leave the others whole: logs, events, queue (default all)")
	set.BoolVar(&f.move, "move", false, "change the number in a fleet that exists, if no log, event or task is stored")
	set.StringVar(&f.config, "nats-config", "", "print this file with the permissions for the streams")
	f.json = render.OutputFlag(cmd)
	return cmd
}

func (p *Process) initialize(cmd *cobra.Command, f *initFlags) error {
	if f.partitions < 0 || f.partitions > bus.MaxPartitions {
		return render.Usagef("--partitions: must be 0 to %d", bus.MaxPartitions)
	}
	want := bus.Streams{Partitions: f.partitions}
	for _, kind := range f.divide {
		stream, ok := divisible()[kind]
		if !ok || f.partitions == 0 {
			return render.Usagef("--divide: %q must be logs, events or queue, and needs --partitions", kind)
		}
		want.Divide = append(want.Divide, stream)
	}
	if f.config != "" {
		return f.permissions(cmd, want)
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
	settled := s.Streams()
	settled.Partitions, settled.Divide = want.Partitions, want.Divide
	if err := f.setup(cmd, nc, settled); err != nil {
		return err
	}
	division, err := bus.FindDivision(cmd.Context(), nc)
	if err != nil {
		return err
	}
	names := func(stream string) (all []string) {
		for i := range division[stream] {
			all = append(all, bus.PartitionName(stream, i, division[stream]))
		}
		return all
	}
	made := initialized{Partitions: slices.Max(slices.Collect(maps.Values(division))), Streams: names(bus.StreamRuns), Events: names(bus.StreamEvents), Queue: names(bus.StreamTasks)}
	if *f.json {
		return render.WriteJSON(cmd, made, p.raw())
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "The streams are there. Tasks are in %s, logs of runs in %s, events in %s.\n",
		strings.Join(made.Queue, ", "), strings.Join(made.Streams, ", "), strings.Join(made.Events, ", "))
	return err
}

// initialized is what the command writes as JSON.
type initialized struct {
	Partitions int      `json:"partitions"` // of what is divided
	Streams    []string `json:"streams"`    // with the logs of runs
	Events     []string `json:"events"`     // the streams with events
	Queue      []string `json:"queue"`      // with tasks
}

// setup makes the streams, and first removes those of another number if that was asked for.
func (f *initFlags) setup(cmd *cobra.Command, nc *nats.Conn, want bus.Streams) error {
	if f.move && f.partitions > 0 {
		is, err := bus.FindDivision(cmd.Context(), nc)
		if err != nil {
			return err
		}
		if is.Differs(want) {
			if err := bus.Redivide(cmd.Context(), nc); err != nil {
				return fmt.Errorf("divide the streams anew: %w", err)
			}
		}
	}
	if err := bus.Setup(cmd.Context(), nc, want); err != nil {
		return fmt.Errorf("set up streams: %w", err)
	}
	return nil
}

// permissions prints a configuration for so many streams.
func (f *initFlags) permissions(cmd *cobra.Command, want bus.Streams) error {
	config, err := render.ReadFile(cmd, f.config, maxNATSConfig)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(cmd.OutOrStdout(), bus.DividePermissions(string(config), want)); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
