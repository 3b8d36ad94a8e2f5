package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// promptsCommand groups what one does with prompts.
func (c *commands) promptsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prompts",
		Short: "Keep the prompts of the fleet",
		Long: "Keep the prompts of the fleet. Each change is a version; agents name a prompt, and a run keeps the version that it\n" +
			"began with.",
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
	flags.StringVarP(&d.file, "file", "f", "", "the text: a file, or - for the standard input")
	flags.StringVar(&d.prompt.Engine, "engine", messages.EngineFString, strings.Join(messages.Engines(), ", "))
	flags.StringVar(&d.prompt.Name, "name", "", "for people")
	flags.StringSliceVar(&d.prompt.RequiredVars, "require", nil, "a variable that must be given; may be repeated")
	flags.StringSliceVar(&d.prompt.Tags, "tag", nil, "may be repeated")
	flags.StringVar(&d.metadata, "metadata", "", "a JSON object")
	_ = cmd.MarkFlagRequired("file") // it exists
}

func (d *draft) read(cmd *cobra.Command, id string) error {
	data, err := ReadFile(cmd, d.file, maxDefinition)
	if err != nil {
		return err
	}
	d.prompt.ID, d.prompt.Text, d.prompt.Metadata = id, string(data), json.RawMessage(d.metadata)
	if d.metadata != "" {
		if err := isObject(d.metadata); err != nil {
			return usagef("--metadata: %v", err)
		}
	}
	return usage(d.prompt.Validate())
}

// leaks are the secrets of this process in the text: it is then not sent, for prompts are read by many.
func (c *commands) leaks(d *draft) ([]string, error) {
	if c.options.Leaks == nil {
		return nil, nil
	}
	found, err := c.options.Leaks(d.prompt.Text)
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

func (c *commands) promptsPut() *cobra.Command {
	var (
		d       draft
		version uint64
		output  format
	)
	cmd := &cobra.Command{
		Use: "put ID -f FILE|-", Short: "Store a new version of a prompt", Args: oneName("id of a prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := d.read(cmd, args[0]); err != nil {
				return err
			}
			if found, err := c.leaks(&d); err != nil {
				return oneLine(err)
			} else if len(found) > 0 {
				return oneLine(fmt.Errorf("%s: %s: nothing was sent; make it a variable of the prompt", d.file, strings.Join(found, "; ")))
			}
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				p, err := client.PutPrompt(cmd.Context(), d.prompt, optional(cmd, "if-version", &version))
				if err != nil {
					return explainCatalog(err, "prompt", args[0])
				}
				if output.json {
					return c.writeJSON(cmd, p)
				}
				return write(cmd.OutOrStdout(), fmt.Sprintf("prompt %s, version %d\n", p.ID, p.Version))
			})
		},
	}
	d.register(cmd)
	cmd.Flags().Uint64Var(&version, "if-version", 0, "only if this is the newest version; 0: only if there is none")
	c.byFlag(cmd, &d.prompt.Author)
	output.register(cmd)
	return cmd
}

func (c *commands) promptsValidate() *cobra.Command {
	var (
		d      draft
		output format
	)
	cmd := &cobra.Command{
		Use: "validate -f FILE|-", Short: "Check a prompt and store nothing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := d.read(cmd, "prompt"); err != nil {
				return err
			}
			found, err := c.leaks(&d)
			if err != nil {
				return oneLine(err)
			}
			if len(found) > 0 {
				return c.writeVerdict(cmd, output, d.file, messages.PromptVerdict{Errors: found})
			}
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				v, err := client.ValidatePrompt(cmd.Context(), d.prompt)
				if err != nil {
					return explainCatalog(err, "prompt", d.file)
				}
				return c.writeVerdict(cmd, output, d.file, v)
			})
		},
	}
	d.register(cmd)
	output.register(cmd)
	return cmd
}

// writeVerdict shows what is wrong with a prompt, which is then the error too.
func (c *commands) writeVerdict(cmd *cobra.Command, output format, file string, v messages.PromptVerdict) error {
	if output.json {
		if err := c.writeJSON(cmd, v); err != nil {
			return err
		}
	} else if v.OK {
		return write(cmd.OutOrStdout(), visible("right; variables: "+strings.Join(v.Vars, ", "))+"\n")
	}
	if v.OK {
		return nil
	}
	return oneLine(fmt.Errorf("%s: %s", file, strings.Join(v.Errors, "; ")))
}

func (c *commands) promptsGet() *cobra.Command {
	var (
		version uint64
		output  format
	)
	cmd := &cobra.Command{
		Use: "get ID", Short: "Show the text of a prompt", Long: "Show the text of a prompt; with -o json all that is known about it.",
		Args: oneName("id of a prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				p, err := client.Prompt(cmd.Context(), args[0], version)
				switch {
				case err != nil:
					return explainCatalog(err, "prompt", args[0])
				case output.json:
					return c.writeJSON(cmd, p)
				default:
					return c.writeText(cmd, p.Text)
				}
			})
		},
	}
	cmd.Flags().Uint64Var(&version, "version", 0, "how it was then; by default how it is")
	output.register(cmd)
	return cmd
}

func (c *commands) promptsList() *cobra.Command {
	var (
		filter messages.PromptFilter
		output format
	)
	cmd := &cobra.Command{
		Use: "list", Short: "List the prompts", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				prompts, err := client.Prompts(cmd.Context(), filter)
				if err != nil {
					return explainCatalog(err, "prompt", filter.Name)
				}
				return c.writePrompts(cmd, output, prompts)
			})
		},
	}
	cmd.Flags().StringVar(&filter.Tag, "tag", "", "only those with this tag")
	cmd.Flags().StringVar(&filter.Name, "name", "", "only those whose id or name has this in it")
	output.register(cmd)
	return cmd
}

func (c *commands) writePrompts(cmd *cobra.Command, f format, prompts []messages.Prompt) error {
	if f.json {
		for _, p := range prompts {
			if err := c.writeJSON(cmd, p); err != nil {
				return err
			}
		}
		return nil
	}
	if len(prompts) == 0 {
		return write(cmd.ErrOrStderr(), "no prompts\n")
	}
	table := newTable(cmd.OutOrStdout())
	writeRow(table, "ID", "VERSION", "ENGINE", "AUTHOR", "TAGS", "NAME")
	for _, p := range prompts {
		row := []string{p.ID, strconv.FormatUint(p.Version, 10), p.Engine, truncate(p.Author, listedToken), strings.Join(p.Tags, ","), truncate(p.Name, listedInput)}
		writeRow(table, row...)
	}
	return flush(table)
}

func (c *commands) promptsRender() *cobra.Command {
	var (
		req    messages.PromptRender
		vars   []string
		object string
		output format
	)
	cmd := &cobra.Command{
		Use: "render ID", Short: "Fill in a prompt", Args: oneName("id of a prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.ID = args[0]
			var err error
			if req.Vars, err = parseVars(vars, object); err != nil {
				return err
			}
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				r, err := client.RenderPrompt(cmd.Context(), req)
				switch {
				case err != nil:
					return explainCatalog(err, "prompt", args[0])
				case output.json:
					return c.writeJSON(cmd, r)
				}
				if err := c.writeText(cmd, r.Text); err != nil {
					return err
				}
				return write(cmd.ErrOrStderr(), fmt.Sprintf("version %d, about %d tokens\n", r.Version, r.TokensEstimate))
			})
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&req.Version, "version", 0, "of the prompt; by default the newest")
	flags.StringArrayVar(&vars, "var", nil, "name=text; may be repeated")
	flags.StringVar(&object, "vars", "", "all variables as a JSON object")
	flags.BoolVar(&req.ThrowOnMissing, "strict", false, "fail when a variable of the text is not given")
	output.register(cmd)
	return cmd
}

// parseVars is an object of both flags; --var counts more.
func parseVars(given []string, object string) (json.RawMessage, error) {
	vars := map[string]json.RawMessage{}
	if object != "" {
		if err := isObject(object); err != nil {
			return nil, usagef("--vars: %v", err)
		}
		if err := json.Unmarshal([]byte(object), &vars); err != nil {
			return nil, usagef("--vars: %v", err)
		}
	}
	for _, v := range given {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, usagef("--var: %q is not name=text", strict.Clip(v, 64))
		}
		vars[name], _ = json.Marshal(value) // a text always encodes
	}
	out, err := json.Marshal(vars)
	if err != nil {
		return nil, usagef("--vars: %v", err)
	}
	return out, nil
}

func (c *commands) promptsHistory() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use: "history ID", Short: "Show who changed a prompt, and when", Args: oneName("id of a prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				changes, err := client.PromptHistory(cmd.Context(), args[0])
				if err != nil {
					return explainCatalog(err, "prompt", args[0])
				}
				return c.writeHistory(cmd, output, "VERSION", changes)
			})
		},
	}
	output.register(cmd)
	return cmd
}

func (c *commands) promptsDiff() *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use: "diff ID [FROM [TO]]", Short: "Compare the texts of two versions of a prompt",
		Long: "Compare the texts of two versions of a prompt: by default the newest with the one before.",
		Args: diffArgs("id of a prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				return c.diff(cmd, output, "prompt", args, client.PromptHistory, func(n uint64) (string, error) {
					p, err := client.Prompt(cmd.Context(), args[0], n)
					return p.Text, err
				})
			})
		},
	}
	output.register(cmd)
	return cmd
}

func (c *commands) promptsDelete() *cobra.Command {
	var (
		by      string
		version uint64
		output  format
	)
	cmd := &cobra.Command{
		Use: "delete ID", Short: "Remove a prompt",
		Long: "Remove a prompt. Runs that began with it go on, and its history stays; an agent that names it fails its new runs.",
		Args: oneName("id of a prompt"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd.Context(), func(client *dispatcher.Client) error {
				change, err := client.DeletePrompt(cmd.Context(), messages.CatalogDelete{Name: args[0], By: by, IfRevision: optional(cmd, "if-version", &version)})
				if err != nil {
					return explainCatalog(err, "prompt", args[0])
				}
				if output.json {
					return c.writeJSON(cmd, change)
				}
				return write(cmd.OutOrStdout(), fmt.Sprintf("prompt %s deleted\n", args[0]))
			})
		},
	}
	cmd.Flags().Uint64Var(&version, "if-version", 0, "only if this is the newest version")
	c.byFlag(cmd, &by)
	output.register(cmd)
	return cmd
}
