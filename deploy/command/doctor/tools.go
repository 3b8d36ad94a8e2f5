package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/deploy/toolbox"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/tools/mcp"
)

// tools looks at what the tools of a worker need: what confines programs, and MCP servers, whose tools it compares with the lock file.
func (d *doctor) tools(ctx context.Context) []Finding {
	t := &d.env.worker.Tools
	if d.env.role != roleWorker || d.env.wrong != nil || t.ToolsFile == "" {
		return nil // the check of the settings tells what is wrong with them
	}
	return append(d.programs(ctx), d.mcpServers(ctx, t)...)
}

// programs proves what confines the programs of tools, as a worker does when it starts.
func (d *doctor) programs(ctx context.Context) []Finding {
	const check = "programs"
	ctx, cancel := d.within(ctx)
	defer cancel()
	by, granted, err := toolbox.Programs(ctx, &d.env.worker.Tools)
	switch {
	case !granted:
		return nil
	case errors.Is(err, process.ErrUnavailable):
		return []Finding{fail(check, "see docs/sandbox.md for what each layer needs, or remove the tool from the file of LONGSHORE_TOOLS", "%v", err)}
	case err != nil:
		return []Finding{fail(check, "correct the file of LONGSHORE_TOOLS", "a worker would not start: %v", err)}
	default:
		return []Finding{ok(check, "confined by %s, started by %s", by.Layers, by.StartedBy)}
	}
}

// mcpServers looks at each MCP server.
func (d *doctor) mcpServers(ctx context.Context, t *settings.Tools) []Finding {
	part, err := toolbox.OpenMCP(t, toolbox.Needs{Log: slog.New(slog.DiscardHandler), Version: d.version})
	switch {
	case errors.Is(err, toolbox.ErrNoMCP):
		return nil
	case err != nil:
		return []Finding{fail("tools", "correct the file of LONGSHORE_TOOLS", "a worker would not start: %v", err)}
	}
	var out []Finding
	for _, name := range slices.Sorted(maps.Keys(part.Config.Servers)) {
		out = append(out, d.mcpServer(ctx, part, name))
	}
	return out
}

func (d *doctor) mcpServer(ctx context.Context, part *toolbox.MCP, name string) Finding {
	ctx, cancel := d.within(ctx)
	defer cancel()
	check := "mcp " + name
	all, err := mcp.Inspect(ctx, part.Config, part.Lock, name, part.Deps)
	if err != nil {
		return fail(check, "start it, or correct its part of the tools file; one that is installed first may need a longer --timeout", "%v", err)
	}
	by := map[mcp.State][]string{}
	for _, st := range all {
		by[st.State] = append(by[st.State], st.Tool)
	}
	if bad := append(by[mcp.Changed], by[mcp.Gone]...); len(bad) > 0 {
		return fail(check, "compare with `longshore tools list "+name+"`, then `longshore tools pin "+name+"` and read the lock file",
			"not as the lock file says, and disabled: %s", someOf(bad))
	}
	found := render.Count(int64(len(by[mcp.Pinned])), "tool") + " as pinned"
	switch others := append(by[mcp.New], by[mcp.Refused]...); {
	case len(by[mcp.Pinned]) == 0 && len(others) > 0:
		return warn(check, "`longshore tools pin "+name+"` and read the lock file", "not pinned: %s", render.Count(int64(len(others)), "tool"))
	case len(others) > 0:
		found += fmt.Sprintf(", %d not offered", len(others))
	}
	return ok(check, "%s", found)
}

// someOf names a few of many.
func someOf(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
