package catalog

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/agents"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// definitions are the commands about agents.
type definitions struct{ revisions }

// agentsCommand groups what one does with agents.
func (c definitions) agentsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "Store, show and remove the agents of the fleet",
		Long: "Store, show and remove the agents of the fleet. A change applies to new runs within two seconds; runs that have started\n" +
			"keep their definition.",
	}
	cmd.AddCommand(c.agentsApply(), c.agentsList(), c.agentsGet(), c.agentsHistory(), c.agentsDiff(), c.agentsDelete(), c.agentsSchema())
	return cmd
}

func (c definitions) agentsApply() *cobra.Command {
	var (
		file, by string
		revision uint64
		output   render.Format
	)
	cmd := &cobra.Command{
		Use:   "apply FILE|FOLDER|-",
		Short: "Store agents from YAML",
		Long: "Store the agents of a file, one in each YAML document, or those of all .yaml and .yml files of a folder, named as\n" +
			"the argument or by -f. An unchanged agent gets no new revision.",
		Example: "  longshore agents apply ./agents",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return render.Usagef("needs one file or folder, got %d arguments", len(args))
			case len(args) == 1 && file != "" || len(args) == 0 && !cmd.Flags().Changed("file"):
				return render.Usagef("needs a file or a folder: longshore agents apply ./agents")
			default:
				return nil
			}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				file = args[0]
			}
			defs, err := readAgents(cmd, file)
			if err != nil {
				return err
			}
			if len(defs) != 1 && cmd.Flags().Changed("if-revision") {
				return render.Usagef("--if-revision: is for one agent, and %s has %d", file, len(defs))
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				for _, d := range defs {
					if err := c.applyAgent(cmd, client, d, by, optional(cmd, "if-revision", &revision), output); err != nil {
						return err
					}
				}
				return warn(cmd, client, defs)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&file, "file", "f", "", "a file, a folder, or - for standard input")
	flags.Uint64Var(&revision, "if-revision", 0, "store only if this is the newest revision; 0: only if there is none")
	c.ByFlag(cmd, &by)
	output.Register(cmd)
	return cmd
}

// readAgents reads and checks all, before anything is stored.
func readAgents(cmd *cobra.Command, file string) ([]messages.Definition, error) {
	if info, err := os.Stat(file); file != render.FromInput && err == nil && info.IsDir() {
		defs, err := agents.Load(file)
		if err != nil {
			return nil, render.Usagef("%v", err) // with the file's name
		}
		return defs, nil
	}
	data, err := render.ReadFile(cmd, file, maxDefinition)
	if err != nil {
		return nil, err
	}
	defs, err := agents.Parse(data)
	if err != nil {
		return nil, render.Usagef("%s: %v", file, err)
	}
	return defs, nil
}

func (c definitions) applyAgent(cmd *cobra.Command, client *dispatcher.Client, d messages.Definition, by string, revision *uint64, f render.Format) error {
	applied, err := client.Agents().Apply(cmd.Context(), d, by, revision)
	if err != nil {
		return explainCatalog(err, "agent", d.Name)
	}
	if f.JSON {
		return c.WriteJSON(cmd, applied)
	}
	what := "applied"
	if !applied.Changed {
		what = "unchanged"
	}
	return render.Write(cmd.OutOrStdout(), fmt.Sprintf("agent %s %s, revision %d\n", render.Visible(applied.Name), what, applied.Revision))
}

func (c definitions) agentsList() *cobra.Command {
	var output render.Format
	cmd := &cobra.Command{
		Use: "list", Short: "List the agents", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				defs, err := client.Agents().List(cmd.Context())
				if err != nil {
					return render.OneLine(err)
				}
				if output.JSON {
					for _, d := range defs {
						if err := c.WriteJSON(cmd, d); err != nil {
							return err
						}
					}
					return nil
				}
				table := render.NewTable(cmd.OutOrStdout())
				table.Row("NAME", "REVISION", "PLANNER", "DESCRIPTION")
				for _, d := range defs {
					table.Row(d.Name, strconv.FormatUint(d.Revision, 10), d.Planner, render.Truncate(render.Visible(d.Description), render.ListedInput))
				}
				return table.Flush()
			})
		},
	}
	output.Register(cmd)
	return cmd
}

// definitionFormat is that of a definition; it is a flag.
type definitionFormat struct{ render.Format }

// String implements pflag.Value.
func (d *definitionFormat) String() string {
	if d.JSON {
		return "json"
	}
	return "yaml"
}

// Set implements pflag.Value.
func (d *definitionFormat) Set(s string) error {
	if s != "yaml" && s != "json" {
		return errors.New("must be yaml or json")
	}
	d.JSON = s == "json"
	return nil
}

func (c definitions) agentsGet() *cobra.Command {
	var (
		revision uint64
		output   definitionFormat
	)
	cmd := &cobra.Command{
		Use: "get NAME", Short: "Show an agent", Args: oneName("name of an agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				r, err := client.Agents().At(cmd.Context(), args[0], revision)
				switch {
				case err != nil:
					return explainCatalog(err, "agent", args[0])
				case r.Agent == nil:
					return explainCatalog(dispatcher.ErrUnknownAgent, "agent", args[0])
				case output.JSON:
					return c.WriteJSON(cmd, r.Agent)
				}
				text, err := agents.Format(*r.Agent)
				if err != nil {
					return err
				}
				return c.writeText(cmd, string(text))
			})
		},
	}
	cmd.Flags().Uint64Var(&revision, "revision", 0, "revision to show (default: the newest)")
	cmd.Flags().VarP(&output, "output", "o", "yaml or json")
	return cmd
}

func (c definitions) agentsHistory() *cobra.Command {
	var output render.Format
	cmd := &cobra.Command{
		Use: "history NAME", Short: "Show who changed an agent, and when", Args: oneName("name of an agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				changes, err := client.Agents().History(cmd.Context(), args[0])
				if err != nil {
					return explainCatalog(err, "agent", args[0])
				}
				return c.writeHistory(cmd, output, "REVISION", changes)
			})
		},
	}
	output.Register(cmd)
	return cmd
}

func (c definitions) agentsDiff() *cobra.Command {
	var output render.Format
	cmd := &cobra.Command{
		Use: "diff NAME [FROM [TO]]", Short: "Compare two revisions of an agent",
		Long: "Compare two revisions of an agent as YAML: by default the newest with the one before.",
		Args: diffArgs("name of an agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				return c.diff(cmd, output, "agent", args, client.Agents().History, func(n uint64) (string, error) {
					r, err := client.Agents().At(cmd.Context(), args[0], n)
					if err != nil || r.Agent == nil {
						return "", err // a deleted one is empty
					}
					text, err := agents.Format(*r.Agent)
					return string(text), err
				})
			})
		},
	}
	output.Register(cmd)
	return cmd
}

func (c definitions) agentsDelete() *cobra.Command {
	var (
		by       string
		revision uint64
		output   render.Format
	)
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Remove an agent",
		Long: "Remove an agent. Its runs continue, and its history stays; a new task that names it is refused. An agent that a dispatcher\n" +
			"reads from a folder comes back when the dispatcher starts again.",
		Args: oneName("name of an agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				change, err := client.Agents().Delete(cmd.Context(), control.CatalogDelete{Name: args[0], By: by, IfRevision: optional(cmd, "if-revision", &revision)})
				if err != nil {
					return explainCatalog(err, "agent", args[0])
				}
				if output.JSON {
					return c.WriteJSON(cmd, change)
				}
				return render.Write(cmd.OutOrStdout(), fmt.Sprintf("agent %s deleted\n", args[0]))
			})
		},
	}
	cmd.Flags().Uint64Var(&revision, "if-revision", 0, "delete only if this is the newest revision")
	c.ByFlag(cmd, &by)
	output.Register(cmd)
	return cmd
}

func (c definitions) agentsSchema() *cobra.Command {
	var output render.Format // the document is JSON in both
	cmd := &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of an agent's file", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			schema, err := agents.Schema()
			if err != nil {
				return err
			}
			return render.Write(cmd.OutOrStdout(), string(schema))
		},
	}
	output.Register(cmd)
	return cmd
}
