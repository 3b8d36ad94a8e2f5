package catalog

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// warn says what agents that were just stored cannot do yet. Whatever is missing may come later, so it is no error.
func warn(cmd *cobra.Command, client *dispatcher.Client, defs []messages.Definition) error {
	for _, warnings := range [][]string{unfit(cmd, client, defs), undelegated(cmd, client, defs)} {
		for _, w := range warnings {
			if err := render.Write(cmd.ErrOrStderr(), "warning: agent "+render.Visible(w)+"\n"); err != nil {
				return err
			}
		}
	}
	return nil
}

// unfit says which agents have tools that no worker offers now, whose runs wait.
func unfit(cmd *cobra.Command, client *dispatcher.Client, defs []messages.Definition) []string {
	if !slices.ContainsFunc(defs, func(d messages.Definition) bool { return len(d.Tools) > 0 }) {
		return nil
	}
	list, err := client.Fleet().Workers(cmd.Context())
	if err != nil || len(list) == 0 {
		return nil // without workers nothing can be said, and the agents are stored
	}
	var offered []string
	for i := range list {
		offered = append(offered, list[i].Tools...)
	}
	slices.Sort(offered)
	var warnings []string
	for _, d := range defs {
		missing := (&messages.Needs{Tools: d.Tools}).MissingFrom(list)
		if missing == "" {
			continue
		}
		// MissingFrom names the first of these.
		first := slices.IndexFunc(d.Tools, func(t string) bool { return !slices.Contains(offered, t) })
		near := ""
		if first >= 0 {
			near = strict.Nearest(d.Tools[first], offered)
		}
		if near != "" {
			warnings = append(warnings, fmt.Sprintf("%s: %s: did you mean %s? Until one has, its runs wait", d.Name, missing, near))
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s: %s; until one has, its runs wait (does LONGSHORE_TOOLS of a worker grant it?)", d.Name, missing))
	}
	return warnings
}

// undelegated says which agents cannot delegate as they are written.
func undelegated(cmd *cobra.Command, client *dispatcher.Client, defs []messages.Definition) []string {
	var warnings []string
	var stored []messages.Definition
	for _, d := range defs {
		lists := slices.Contains(d.Tools, messages.ToolDelegate)
		switch {
		case d.Delegate == nil && !lists:
			continue
		case d.Delegate == nil:
			warnings = append(warnings, d.Name+": spec.delegate is missing: each call of delegate is refused; name the agents in delegate.agents")
			continue
		case !lists:
			warnings = append(warnings, d.Name+": delegate is not in spec.tools: it cannot delegate")
			continue
		}
		if stored == nil {
			var err error
			if stored, err = client.Agents().List(cmd.Context()); err != nil {
				return warnings // of agents that cannot be listed nothing can be said, and these are stored
			}
		}
		for _, to := range d.Delegate.Agents {
			if !slices.ContainsFunc(stored, func(s messages.Definition) bool { return s.Name == to }) {
				warnings = append(warnings, fmt.Sprintf("%s: delegate.agents: there is no agent %q; until there is, calls that name it are refused", d.Name, to))
			}
		}
	}
	return warnings
}
