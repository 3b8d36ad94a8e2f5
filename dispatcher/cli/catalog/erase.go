package catalog

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/erasure"
)

// whose says what a data request is about.
type whose struct{ erasure.Scope }

func (w *whose) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&w.Session, "session", "", "only what is of this conversation")
	flags.StringVar(&w.Subject, "subject", "", "only what is about this person: runs with the label subject, items with the subject")
}

// check wants the tenant to be named where all of it is meant.
func (w *whose) check(cmd *cobra.Command, tenant string) error {
	w.Tenant = tenant
	if w.Whole() && !cmd.Flags().Changed("tenant") {
		return render.Usagef("name a person with --subject, a conversation with --session, or with --tenant alone all of a tenant")
	}
	if err := w.Check(); err != nil {
		return render.Misuse(err)
	}
	return nil
}

// String is the scope in words.
func (w *whose) String() string {
	switch {
	case w.Session != "":
		return fmt.Sprintf("session %s of tenant %s", w.Session, w.Tenant)
	case w.Subject != "":
		return fmt.Sprintf("subject %s of tenant %s", render.Visible(w.Subject), w.Tenant)
	default:
		return "tenant " + w.Tenant
	}
}

// counts is what was found, or erased, of all pages.
type counts struct {
	Runs     int      `json:"runs"`
	Busy     []string `json:"busy,omitempty"`
	Sessions int      `json:"sessions"`
	Items    int64    `json:"items"`
	Cached   int64    `json:"cached"`
	Key      bool     `json:"key"`
	Left     []string `json:"left,omitempty"`
	DryRun   bool     `json:"dryRun,omitempty"`
}

func (c *counts) add(p *erasure.Kept) {
	c.Runs, c.Busy, c.Sessions, c.Items = c.Runs+len(p.Runs), append(c.Busy, p.Busy...), c.Sessions+len(p.Sessions), c.Items+p.Items
	c.Cached, c.Key = c.Cached+p.Cached, c.Key || p.Key
	for _, left := range p.Left {
		if !slices.Contains(c.Left, left) {
			c.Left = append(c.Left, left)
		}
	}
}

// String is what there is, in words.
func (c *counts) String() string {
	text := fmt.Sprintf("%s, %s of long-term memory, %s", render.Count(int64(c.Runs), "run"), render.Count(c.Items, "item"), render.Count(int64(c.Sessions), "session"))
	if c.Key {
		text += ", the key of the tenant"
	}
	return text
}

// erase erases all that is kept of a tenant, a conversation or a person.
func (m memories) erase() *cobra.Command {
	var (
		s                  conn.Shared
		w                  whose
		by                 string
		sure, dry, keepKey bool
	)
	cmd := &cobra.Command{
		Use: "delete", Short: "Erase all that is kept of a tenant, a conversation or a person",
		Long: "Erase all that is kept of a person (--subject), a conversation (--session), or with --tenant alone of a tenant: runs with their\n" +
			"logs, files, events and feedback, items of long-term memory, conversations, dead letters, and what workers keep in Redis. Runs that\n" +
			"have not ended stay: cancel them first. Of a whole tenant the key is destroyed too, so that backups and the audit cannot be read.",
		Example: "  longshore memory delete --tenant acme --subject customer-17 --dry-run\n  longshore memory delete --tenant acme --yes --by ann",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := w.check(cmd, s.Tenant); err != nil {
				return err
			}
			return m.With(cmd.Context(), func(client *dispatcher.Client) error {
				found := counts{DryRun: true}
				for page, err := range client.Data().Find(cmd.Context(), w.Scope) {
					if err != nil {
						return explainMemory(err, s.Tenant)
					}
					found.add(page)
				}
				found.Key = found.Key && !keepKey
				switch {
				case dry:
					return m.erased(cmd, &s, &w, &found)
				case !sure:
					return render.Usagef("this erases %s, of %s, for good: check with --dry-run, then give --yes", found.String(), w.String())
				}
				done := counts{}
				r := erasure.EraseRequest{Scope: w.Scope, KeepKey: keepKey, By: by}
				for page, err := range client.Data().Erase(cmd.Context(), r) {
					if err != nil {
						return render.Worded(fmt.Sprintf("%s erased before this failed; make the command again: %s", done.String(), render.Explain(err, messages.Ref{Tenant: s.Tenant})), err)
					}
					if done.add(page); page.Next != "" && !s.Output.JSON {
						if err := render.Write(cmd.ErrOrStderr(), fmt.Sprintf("%d of %s erased\n", done.Runs, render.Count(int64(found.Runs), "run"))); err != nil {
							return err
						}
					}
				}
				return m.erased(cmd, &s, &w, &done)
			})
		},
	}
	s.Register(cmd)
	w.register(cmd)
	m.ByFlag(cmd, &by)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be erased")
	cmd.Flags().BoolVar(&sure, "yes", false, "do it; it cannot be undone")
	cmd.Flags().BoolVar(&keepKey, "keep-key", false, "of a whole tenant: do not destroy its key")
	return cmd
}

// erased says what was done, and fails if runs are left.
func (m memories) erased(cmd *cobra.Command, s *conn.Shared, w *whose, c *counts) error {
	if s.Output.JSON {
		if err := m.WriteJSON(cmd, c); err != nil {
			return err
		}
	} else if err := c.write(cmd.OutOrStdout(), w); err != nil {
		return err
	}
	if len(c.Busy) > 0 && !c.DryRun {
		return fmt.Errorf("%s not ended and will stay: cancel them, then make the command again: %s", having(len(c.Busy)), strings.Join(c.Busy[:min(len(c.Busy), 8)], ", "))
	}
	return nil
}

func having(runs int) string {
	if runs == 1 {
		return "1 run has"
	}
	return fmt.Sprintf("%d runs have", runs)
}

func (c *counts) write(out io.Writer, w *whose) error {
	verb := "erased"
	if c.DryRun {
		verb = "would be erased"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s %s\n", w.String(), c.String(), verb)
	if c.Cached > 0 {
		text.WriteString(render.Count(c.Cached, "value") + " removed from Redis\n")
	}
	for _, left := range c.Left {
		text.WriteString("not here: " + render.Visible(left) + "\n")
	}
	if len(c.Busy) > 0 && c.DryRun {
		text.WriteString(having(len(c.Busy)) + " not ended and would stay\n")
	}
	return render.Write(out, text.String())
}
