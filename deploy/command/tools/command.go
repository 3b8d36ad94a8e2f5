// Package tools is the command `longshore tools`: it compares the tools of MCP servers with what is pinned, and pins them. It
// stands apart from the client commands because it links the tools of workers, and reads a worker's environment.
package tools

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/deploy/toolbox"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/tools/mcp"
	"github.com/longshore-run/longshore/worker/policy"
)

// Config is what the process passes to the command.
type Config struct {
	Environ func() []string
	Version string // of this program
	Raw     bool   // the output is no terminal: JSON is written as it is
}

// ErrAway means that a server did not answer. The others did.
var ErrAway = errors.New("a server did not answer")

// Command is `longshore tools`.
func Command(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use: "tools", Short: "Compare and pin the tools of MCP servers",
		Long: "Compare the tools of MCP servers with the lock file beside the tools file, and pin them there. A worker offers them as the\n" +
			"lock file defines them. Both commands read the file that LONGSHORE_TOOLS names and start or call its servers.",
	}
	cmd.AddCommand(listCommand(cfg), pinCommand(cfg))
	return cmd
}

func listCommand(cfg Config) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "list [SERVER...]", Short: "List the tools of MCP servers and whether they are as pinned",
		Long: "List the tools of the MCP servers, all or those that are named:\n\n" +
			"  pinned   offered: the server defines it as the lock file does\n" +
			"  new      not in the lock file, and not offered\n" +
			"  changed  the server defines it differently from the lock file: disabled\n" +
			"  gone     the server no longer has it: disabled\n" +
			"  refused  cannot be offered, and the last column says why",
		RunE: func(cmd *cobra.Command, names []string) error {
			l, err := look(cmd, cfg, names)
			if err != nil {
				return err
			}
			if *asJSON {
				err = render.WriteJSON(cmd, l.all, cfg.Raw)
			} else {
				err = l.print(cmd, func(st mcp.Standing) []string {
					return []string{string(st.State), st.Server, st.Tool, st.Name, string(st.Effect), st.Why}
				}, "STATE", "SERVER", "TOOL", "NAME", "EFFECT", "WHY")
			}
			return errors.Join(err, l.away())
		},
	}
	asJSON = render.OutputFlag(cmd)
	return cmd
}

// pinned is what the lock file now says of a tool, and whether that is new.
type pinned struct {
	Pin string `json:"pin"` // added, changed, removed, as before, refused
	mcp.Standing
}

func pinCommand(cfg Config) *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "pin [SERVER...]", Short: "Write what MCP servers define now into the lock file",
		Long: "Write the definitions of the tools of MCP servers, all or those that are named, into the lock file. Models are told\n" +
			"what it says: review its changes before workers start with it. Definitions that have not changed stay as they are,\n" +
			"with descriptions that you wrote.",
		RunE: func(cmd *cobra.Command, names []string) error {
			l, err := look(cmd, cfg, names)
			if err != nil {
				return err
			}
			for _, server := range l.seen {
				l.part.Lock.Pin(server, l.of(server))
			}
			if len(l.seen) > 0 {
				if err := l.part.Lock.Write(l.part.LockFile); err != nil {
					return err
				}
			}
			said := map[mcp.State]string{mcp.New: "added", mcp.Changed: "changed", mcp.Gone: "removed", mcp.Pinned: "as before", mcp.Refused: "refused"}
			if *asJSON {
				all := make([]pinned, 0, len(l.all))
				for _, st := range l.all {
					all = append(all, pinned{said[st.State], st})
				}
				return errors.Join(render.WriteJSON(cmd, all, cfg.Raw), l.away())
			}
			err = l.print(cmd, func(st mcp.Standing) []string { return []string{said[st.State], st.Server, st.Tool, st.Name, st.Why} },
				"PIN", "SERVER", "TOOL", "NAME", "WHY")
			if err == nil && len(l.seen) > 0 {
				err = render.Write(cmd.OutOrStdout(), fmt.Sprintf("wrote %s: read its changes before workers start with it\n", render.Visible(l.part.LockFile)))
			}
			return errors.Join(err, l.away())
		},
	}
	asJSON = render.OutputFlag(cmd)
	return cmd
}

// looked is what was found of some servers.
type looked struct {
	part   *toolbox.MCP
	all    []mcp.Standing
	seen   []string
	failed []string
}

// worker is the part of a worker's environment that says which tools it grants.
type worker struct{ settings.Tools }

// Check implements settings.Checker.
func (worker) Check() error { return nil }

func look(cmd *cobra.Command, cfg Config, names []string) (*looked, error) {
	var w worker
	if err := settings.Load(&w, cfg.Environ()); err != nil {
		return nil, err
	}
	if w.ToolsFile == "" {
		return nil, settings.Errorf("LONGSHORE_TOOLS is missing: set it to the file that grants a worker its tools, such as tools.yaml (docs/tools.md)")
	}
	part, err := toolbox.OpenMCP(&w.Tools, toolbox.Needs{Log: slog.New(slog.DiscardHandler), Version: cfg.Version})
	if errors.Is(err, toolbox.ErrNoMCP) {
		return nil, w.Wrong(errors.New("spec.mcp is missing: there are no MCP servers"))
	}
	if err != nil {
		return nil, err
	}
	known := slices.Sorted(maps.Keys(part.Config.Servers))
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, render.Usagef("there is no server %q; known: %s", name, strings.Join(known, ", "))
		}
	}
	if len(names) == 0 {
		names = known
	}
	l, redact := &looked{part: part, all: []mcp.Standing{}}, policy.NewRedactor(settings.Secrets(&w)...)
	for _, name := range names {
		found, err := mcp.Inspect(cmd.Context(), part.Config, part.Lock, name, part.Deps)
		if cmd.Context().Err() != nil {
			return nil, cmd.Context().Err()
		}
		if err != nil {
			l.failed = append(l.failed, name+": "+redact.String(err.Error()))
			continue
		}
		l.seen = append(l.seen, name)
		l.all = append(l.all, found...)
	}
	return l, nil
}

// of are the tools of one server.
func (l *looked) of(server string) (some []mcp.Standing) {
	for _, st := range l.all {
		if st.Server == server {
			some = append(some, st)
		}
	}
	return some
}

// away is an error about the servers that did not answer.
func (l *looked) away() error {
	if len(l.failed) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrAway, strings.Join(l.failed, "; "))
}

func (l *looked) print(cmd *cobra.Command, row func(mcp.Standing) []string, head ...string) error {
	if len(l.all) == 0 {
		return nil
	}
	t := render.NewTable(cmd.OutOrStdout())
	t.Row(head...)
	for _, st := range l.all {
		t.Row(row(st)...)
	}
	return t.Flush()
}
