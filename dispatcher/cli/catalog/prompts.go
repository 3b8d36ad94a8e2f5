package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// prompts are the commands about prompts.
type prompts struct{ revisions }

// promptsCommand groups what one does with prompts.
func (c prompts) promptsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prompts",
		Short: "Store, show and remove the prompts of the fleet",
		Long: "Store, show and remove the prompts of the fleet. Each change is a version; agents name a prompt, and a run keeps the version\n" +
			"that it started with.",
	}
	cmd.AddCommand(c.promptsPut(), c.promptsGet(), c.promptsList(), c.promptsRender(), c.promptsValidate(), c.promptsHistory(),
		c.promptsDiff(), c.promptsDelete())
	return cmd
}

// draft is what the flags of put and validate say about a prompt.
type draft struct {
	prompt   messages.Prompt
	file     string
	metadata string
}

func (d *draft) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&d.file, "file", "f", "", "the text: a file, or - for standard input")
	flags.StringVar(&d.prompt.Engine, "engine", messages.EngineFString, strings.Join(messages.Engines(), ", "))
	flags.StringVar(&d.prompt.Name, "name", "", "for people")
	flags.StringSliceVar(&d.prompt.RequiredVars, "require", nil, "a variable that must be given; may be repeated")
	flags.StringSliceVar(&d.prompt.Tags, "tag", nil, "may be repeated")
	flags.StringVar(&d.metadata, "metadata", "", "a JSON object")
	_ = cmd.MarkFlagRequired("file") // it exists
}

func (d *draft) read(cmd *cobra.Command, id string) error {
	data, err := render.ReadFile(cmd, d.file, maxDefinition)
	if err != nil {
		return err
	}
	d.prompt.ID, d.prompt.Text, d.prompt.Metadata = id, string(data), json.RawMessage(d.metadata)
	if d.metadata != "" {
		if err := isObject(d.metadata); err != nil {
			return render.Usagef("--metadata: %v", err)
		}
	}
	return render.Misuse(d.prompt.Validate())
}

// leaks are the secrets of this process in the text: it is then not sent, for prompts are read by many.
func (c prompts) leaks(d *draft) ([]string, error) {
	if c.Options.Leaks == nil {
		return nil, nil
	}
	found, err := c.Options.Leaks(d.prompt.Text)
	if err != nil {
		return nil, fmt.Errorf("look for secrets of this environment: %w", err)
	}
	return found, nil
}

func isObject(text string) error {
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil || m == nil {
		return errors.New("must be a JSON object")
	}
	return nil
}

func (c prompts) promptsPut() *cobra.Command {
	var (
		d       draft
		version uint64
		output  render.Format
	)
	cmd := &cobra.Command{
		Use: "put ID -f FILE|-", Short: "Store a new version of a prompt", Args: oneName("id of a prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := d.read(cmd, args[0]); err != nil {
				return err
			}
			if found, err := c.leaks(&d); err != nil {
				return render.OneLine(err)
			} else if len(found) > 0 {
				return render.OneLine(fmt.Errorf("%s: %s: nothing was sent; make it a variable of the prompt", d.file, strings.Join(found, "; ")))
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				p, err := client.Prompts().Put(cmd.Context(), d.prompt, optional(cmd, "if-version", &version))
				if err != nil {
					return explainCatalog(err, "prompt", args[0])
				}
				if output.JSON {
					return c.WriteJSON(cmd, p)
				}
				return render.Write(cmd.OutOrStdout(), fmt.Sprintf("prompt %s, version %d\n", p.ID, p.Version))
			})
		},
	}
	d.register(cmd)
	cmd.Flags().Uint64Var(&version, "if-version", 0, "only if this is the newest version; 0: only if there is none")
	c.ByFlag(cmd, &d.prompt.Author)
	output.Register(cmd)
	return cmd
}

func (c prompts) promptsValidate() *cobra.Command {
	var (
		d      draft
		output render.Format
	)
	cmd := &cobra.Command{
		Use: "validate -f FILE|-", Short: "Check a prompt and store nothing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := d.read(cmd, "prompt"); err != nil {
				return err
			}
			found, err := c.leaks(&d)
			if err != nil {
				return render.OneLine(err)
			}
			if len(found) > 0 {
				return c.writeVerdict(cmd, output, d.file, control.PromptVerdict{Errors: found})
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				v, err := client.Prompts().Validate(cmd.Context(), d.prompt)
				if err != nil {
					return explainCatalog(err, "prompt", d.file)
				}
				return c.writeVerdict(cmd, output, d.file, v)
			})
		},
	}
	d.register(cmd)
	output.Register(cmd)
	return cmd
}

// writeVerdict shows what is wrong with a prompt, which is then the error too.
func (c prompts) writeVerdict(cmd *cobra.Command, output render.Format, file string, v control.PromptVerdict) error {
	if output.JSON {
		if err := c.WriteJSON(cmd, v); err != nil {
			return err
		}
	} else if v.OK {
		return render.Write(cmd.OutOrStdout(), render.Visible("right; variables: "+strings.Join(v.Vars, ", "))+"\n")
	}
	if v.OK {
		return nil
	}
	return render.OneLine(fmt.Errorf("%s: %s", file, strings.Join(v.Errors, "; ")))
}

func (c prompts) promptsGet() *cobra.Command {
	var (
		version uint64
		output  render.Format
	)
	cmd := &cobra.Command{
		Use: "get ID", Short: "Show the text of a prompt", Long: "Show the text of a prompt; with -o json all that is known about it.",
		Args: oneName("id of a prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				p, err := client.Prompts().Get(cmd.Context(), args[0], version)
				switch {
				case err != nil:
					return explainCatalog(err, "prompt", args[0])
				case output.JSON:
					return c.WriteJSON(cmd, p)
				default:
					return c.writeText(cmd, p.Text)
				}
			})
		},
	}
	cmd.Flags().Uint64Var(&version, "version", 0, "how it was then; by default how it is")
	output.Register(cmd)
	return cmd
}

func (c prompts) promptsList() *cobra.Command {
	var (
		filter control.PromptFilter
		output render.Format
	)
	cmd := &cobra.Command{
		Use: "list", Short: "List the prompts", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				prompts, err := client.Prompts().List(cmd.Context(), filter)
				if err != nil {
					return explainCatalog(err, "prompt", filter.Name)
				}
				return c.writePrompts(cmd, output, prompts)
			})
		},
	}
	cmd.Flags().StringVar(&filter.Tag, "tag", "", "only those with this tag")
	cmd.Flags().StringVar(&filter.Name, "name", "", "only prompts whose id or name contains this text")
	output.Register(cmd)
	return cmd
}

func (c prompts) writePrompts(cmd *cobra.Command, f render.Format, prompts []messages.Prompt) error {
	if f.JSON {
		for _, p := range prompts {
			if err := c.WriteJSON(cmd, p); err != nil {
				return err
			}
		}
		return nil
	}
	if len(prompts) == 0 {
		return render.Write(cmd.ErrOrStderr(), "no prompts\n")
	}
	table := render.NewTable(cmd.OutOrStdout())
	table.Row("ID", "VERSION", "ENGINE", "AUTHOR", "TAGS", "NAME")
	for _, p := range prompts {
		row := []string{p.ID, strconv.FormatUint(p.Version, 10), p.Engine, render.Truncate(p.Author, render.ListedToken), strings.Join(p.Tags, ","), render.Truncate(p.Name, render.ListedInput)}
		table.Row(row...)
	}
	return table.Flush()
}

func (c prompts) promptsRender() *cobra.Command {
	var (
		req    control.PromptRender
		vars   []string
		object string
		output render.Format
	)
	cmd := &cobra.Command{
		Use: "render ID", Short: "Fill in a prompt", Args: oneName("id of a prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.ID = args[0]
			var err error
			if req.Vars, err = parseVars(vars, object); err != nil {
				return err
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				r, err := client.Prompts().Render(cmd.Context(), req)
				switch {
				case err != nil:
					return explainCatalog(err, "prompt", args[0])
				case output.JSON:
					return c.WriteJSON(cmd, r)
				}
				if err := c.writeText(cmd, r.Text); err != nil {
					return err
				}
				return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("version %d, about %d tokens\n", r.Version, r.TokensEstimate))
			})
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&req.Version, "version", 0, "of the prompt; by default the newest")
	flags.StringArrayVar(&vars, "var", nil, "name=text; may be repeated")
	flags.StringVar(&object, "vars", "", "all variables as a JSON object")
	flags.BoolVar(&req.ThrowOnMissing, "strict", false, "fail when a variable of the text is not given")
	output.Register(cmd)
	return cmd
}

// parseVars is an object of both flags; --var counts more.
func parseVars(given []string, object string) (json.RawMessage, error) {
	vars := map[string]json.RawMessage{}
	if object != "" {
		if err := isObject(object); err != nil {
			return nil, render.Usagef("--vars: %v", err)
		}
		if err := json.Unmarshal([]byte(object), &vars); err != nil {
			return nil, render.Usagef("--vars: %v", err)
		}
	}
	for _, v := range given {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, render.Usagef("--var: %q is not name=text", strict.Clip(v, 64))
		}
		vars[name], _ = json.Marshal(value) // a text always encodes
	}
	out, err := json.Marshal(vars)
	if err != nil {
		return nil, render.Usagef("--vars: %v", err)
	}
	return out, nil
}

func (c prompts) promptsHistory() *cobra.Command {
	var output render.Format
	cmd := &cobra.Command{
		Use: "history ID", Short: "Show who changed a prompt, and when", Args: oneName("id of a prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				changes, err := client.Prompts().History(cmd.Context(), args[0])
				if err != nil {
					return explainCatalog(err, "prompt", args[0])
				}
				return c.writeHistory(cmd, output, "VERSION", changes)
			})
		},
	}
	output.Register(cmd)
	return cmd
}

func (c prompts) promptsDiff() *cobra.Command {
	var output render.Format
	cmd := &cobra.Command{
		Use: "diff ID [FROM [TO]]", Short: "Compare the texts of two versions of a prompt",
		Long: "Compare the texts of two versions of a prompt: by default the newest with the one before.",
		Args: diffArgs("id of a prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				return c.diff(cmd, output, "prompt", args, client.Prompts().History, func(n uint64) (string, error) {
					p, err := client.Prompts().Get(cmd.Context(), args[0], n)
					return p.Text, err
				})
			})
		},
	}
	output.Register(cmd)
	return cmd
}

func (c prompts) promptsDelete() *cobra.Command {
	var (
		by      string
		version uint64
		output  render.Format
	)
	cmd := &cobra.Command{
		Use: "delete ID", Short: "Remove a prompt",
		Long: "Remove a prompt. Runs that started with it continue, and its history stays; new runs of an agent that names it fail.",
		Args: oneName("id of a prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				change, err := client.Prompts().Delete(cmd.Context(), control.CatalogDelete{Name: args[0], By: by, IfRevision: optional(cmd, "if-version", &version)})
				if err != nil {
					return explainCatalog(err, "prompt", args[0])
				}
				if output.JSON {
					return c.WriteJSON(cmd, change)
				}
				return render.Write(cmd.OutOrStdout(), fmt.Sprintf("prompt %s deleted\n", args[0]))
			})
		},
	}
	cmd.Flags().Uint64Var(&version, "if-version", 0, "only if this is the newest version")
	c.ByFlag(cmd, &by)
	output.Register(cmd)
	return cmd
}
