package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/sandbox/snapshot"
)

type filesFlags struct {
	output render.Format
	fix    bool
}

func filesCommand(cfg Config) *cobra.Command {
	var f filesFlags
	cmd := &cobra.Command{
		Use: "files", Short: "Find files that belong to no run",
		Long: "Look for stored files that no run refers to, for references of runs that do not exist, for named workspaces that have had no\n" +
			"files for a day, and, below LONGSHORE_WORKSPACES on this machine, for folders of workers that have died. It changes nothing.\n" +
			"With --fix it removes them, as dispatchers do every hour and workers at their start. It also counts runs whose files cannot be read.\n\n" +
			"It needs the NATS user of a dispatcher, and exits with 1 if the files of a run are missing or damaged.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, &cfg) },
	}
	f.output.Register(cmd)
	cmd.Flags().BoolVar(&f.fix, "fix", false, "remove them")
	return cmd
}

// strayFiles is what `doctor files` found.
type strayFiles struct {
	Contents   int  `json:"contents"`   // that nothing refers to
	Unfinished int  `json:"unfinished"` // storings that were given up
	References int  `json:"references"` // runs that do not exist and refer to files
	Workspaces int  `json:"workspaces"` // named ones that have had no files for a day
	Folders    int  `json:"folders"`    // workers that have died and left folders
	Broken     int  `json:"broken"`     // lists of files that runs refer to and that cannot be read
	Removed    bool `json:"removed"`    // all but the broken
}

func (f *filesFlags) run(cmd *cobra.Command, cfg *Config) error {
	found, err := f.find(cmd.Context(), cfg.Environ())
	if err != nil {
		return err
	}
	if f.output.JSON {
		err = render.WriteJSON(cmd, found, cfg.Raw)
	} else {
		err = found.write(cmd.OutOrStdout())
	}
	if err == nil && found.Broken > 0 {
		err = fmt.Errorf("%w: %d", ErrBroken, found.Broken)
	}
	return err
}

func (f *filesFlags) find(ctx context.Context, environ []string) (*strayFiles, error) {
	var client settings.Client
	if err := settings.Load(&client, environ); err != nil {
		return nil, err
	}
	if client.API != "" {
		return nil, settings.Errorf("LONGSHORE_URL is set: this looks where files are stored, so unset it and set NATS_URL")
	}
	var own settings.Worker
	if err := settings.Read(&own, environ); err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	nc, err := fleet.Connect(ctx, client.NATS, fleet.Client, log)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	b, err := bus.Open(ctx, nc, bus.Config{Log: log})
	if err != nil {
		return nil, err
	}
	keys, err := fleet.Keys(b, &own.Encryption)
	if err != nil {
		return nil, err
	}
	c, err := files.NewSealed(b, keys).Collect(ctx, !f.fix)
	if err != nil {
		return nil, err
	}
	found := &strayFiles{Contents: c.Contents, Unfinished: c.Parts, References: c.Refs, Workspaces: c.Heads, Broken: c.Broken, Removed: f.fix}
	if found.Folders, err = snapshot.Strays(filepath.Clean(own.Workspaces), f.fix); err != nil {
		return nil, err
	}
	return found, nil
}

// write tells it to a person.
func (s *strayFiles) write(w io.Writer) (err error) {
	say := func(n int, what string) {
		if n > 0 && err == nil {
			_, err = fmt.Fprintf(w, "%d %s\n", n, what)
		}
	}
	say(s.Contents, "contents that no run refers to")
	say(s.Unfinished, "contents that were stored in part")
	say(s.References, "runs that do not exist and refer to files")
	say(s.Workspaces, "named workspaces that have had no files for a day")
	say(s.Folders, "workers that have died and left folders on this machine")
	say(s.Broken, "lists of files of runs that are missing or damaged: restore the stream FILES from a backup")
	strays := s.Contents + s.Unfinished + s.References + s.Workspaces + s.Folders
	text := "No file is without a run.\n"
	switch {
	case strays > 0 && s.Removed:
		text = "They were removed.\n"
	case strays > 0:
		text = "Dispatchers remove such files every hour, and workers such folders at their start; --fix does it now.\n"
	case s.Broken > 0:
		text = ""
	}
	_, end := io.WriteString(w, text)
	return errors.Join(err, end)
}
