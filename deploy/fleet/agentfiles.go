package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/agents"
	"github.com/longshore-run/longshore/messages/document"
)

// agentsEvery is how often the files of agents are looked at.
const agentsEvery = time.Second

// maxAgentFiles bounds the look, in bytes of all files together.
const maxAgentFiles = 16 << 20

// keepAgents stores the agents of a folder again whenever their files change, until ctx ends. Files that cannot be read
// change nothing: what is wrong with them is logged, once for each change. An agent whose file is removed stays.
func (d *Dev) keepAgents(ctx context.Context, dir string, log *slog.Logger) error {
	client, err := d.Client(ctx)
	if err != nil {
		return err
	}
	known := d.agentFiles
	tick := time.NewTicker(agentsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.done:
			return nil
		case <-tick.C:
		}
		sum := agentSum(dir)
		if sum == known {
			continue
		}
		known = sum
		if err := applyAll(ctx, client, dir, log); err != nil && ctx.Err() == nil {
			log.ErrorContext(ctx, "agent files are wrong: the agents stay as they were", "err", err)
		}
	}
}

func applyAll(ctx context.Context, client *dispatcher.Client, dir string, log *slog.Logger) error {
	defs, err := agents.Load(dir)
	if err != nil {
		return err
	}
	var failed []error
	for _, def := range defs {
		applied, err := client.Agents().Apply(ctx, def, "longshore dev", nil)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("store agent %s: %w", def.Name, err))
		case applied.Changed:
			log.InfoContext(ctx, "agent reloaded from its file", "agent", applied.Name, "revision", applied.Revision)
		}
	}
	return errors.Join(failed...)
}

// agentSum is a sum over the files of agents: another one means that something changed.
func agentSum(dir string) [sha256.Size]byte {
	sum := sha256.New()
	if dir == "" {
		return [sha256.Size]byte{}
	}
	var files []string
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // a folder that is gone has none
		files = append(files, found...)
	}
	slices.Sort(files)
	room := int64(maxAgentFiles)
	for _, file := range files {
		data, err := document.Read(file, room)
		room -= int64(len(data))
		fmt.Fprintf(sum, "%q %v %q\n", file, err, data)
	}
	return [sha256.Size]byte(sum.Sum(nil))
}
