package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/dispatcher"
)

// fleet returns a client of the fleet that the environment names, or of one that it starts here, and a function that
// ends both.
func (f *runFlags) fleet(cmd *cobra.Command) (*dispatcher.Client, func() error, error) {
	if f.process.fleetElsewhere() {
		c, closeConn, err := f.process.connect(cmd.Context())
		return c, func() error { closeConn(); return nil }, err
	}
	cfg := fleet.DevConfig{NATSAddr: embedded.NoListen, Agents: f.agents, Workspace: f.workspace, Abrupt: true}
	if f.workspace == "" {
		dir, err := os.MkdirTemp("", "longshore-files-")
		if err != nil {
			return nil, nil, fmt.Errorf("make a folder for files: %w", err)
		}
		cfg.Folders = dir
	}
	dev, err := f.process.startDev(cmd, &cfg, "error")
	if err != nil {
		return nil, nil, err
	}
	sayScripted(cmd, dev)
	if f.console {
		f.page = pagesOf(&cfg, dev)
	}
	letGo := f.process.keepHeap(cmd.Context(), cfg.MemoryLimit, cfg.Slots)
	stop := func() error {
		defer letGo()
		if f.scratch {
			return errors.Join(dev.Stop(), os.RemoveAll(cfg.Folders))
		}
		return errors.Join(dev.Stop(), keepFiles(cmd, cfg.Folders))
	}
	c, err := dev.Client(cmd.Context())
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return c, stop, nil
}

// evalFleet returns a client of the fleet that a suite runs on, which is that of `longshore run`.
func (p *Process) evalFleet(cmd *cobra.Command, agents string) (*dispatcher.Client, func() error, error) {
	if p.fleetElsewhere() && agents != "" {
		return nil, nil, usageError("--agents needs the fleet in this process: unset NATS_URL and LONGSHORE_URL")
	}
	f := runFlags{process: p, agents: agents, scratch: true}
	return f.fleet(cmd)
}

// keepFiles says where the files of runs are, or removes their folder when there are none.
func keepFiles(cmd *cobra.Command, dir string) error {
	if dir == "" {
		return nil
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case filepath.Dir(path) == dir && strings.HasPrefix(d.Name(), "."): // the worker's own: locks and the like
			return fs.SkipDir
		case d.Type().IsRegular():
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
