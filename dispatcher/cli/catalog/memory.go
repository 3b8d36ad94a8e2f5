package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/messages/strict"
)

// memories are the commands about long-term memory.
type memories struct{ *conn.Caller }

func (m memories) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "List, search, write or remove what is in long-term memory",
		Long: "List, search, write or remove what is in the long-term memory of a tenant: what agents keep beyond their runs, and documents\n" +
			"that people bring. The dispatcher answers, and needs the same LONGSHORE_MEMORY as the workers.",
	}
	cmd.AddCommand(m.ls(), m.show(), m.search(), m.put(), m.rm(), m.export(), m.erase())
	return cmd
}

// scoped are the flags that say which items are meant.
type scoped struct{ memory.Filter }

func (s *scoped) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.Agent, "agent", "", "only items of this agent")
	flags.StringVar(&s.Session, "session", "", "only items of this conversation")
	flags.StringVar(&s.Subject, "subject", "", "only items about this person or thing")
	flags.StringArrayVar(&s.Tags, "tag", nil, "only items with this tag; may be repeated")
}

// ls lists collections, or the items of one.
func (m memories) ls() *cobra.Command {
	var (
		s     conn.Shared
		which scoped
		limit int
	)
	cmd := &cobra.Command{
		Use: "ls [COLLECTION]", Aliases: []string{"list"}, Short: "List the collections, or the items of one, newest first",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return render.Usagef("needs at most the name of one collection, got %d arguments", len(args))
			}
			if limit < 1 {
				return render.Usagef("--limit must be at least 1")
			}
			return names(args, "collection")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.With(cmd.Context(), func(client *dispatcher.Client) error {
				if len(args) == 0 {
					return m.collections(cmd, client, &s)
				}
				return m.items(cmd, client, &s, memory.ListRequest{Tenant: s.Tenant, Name: args[0], Filter: which.Filter}, limit)
			})
		},
	}
	s.Register(cmd)
	which.register(cmd)
	cmd.Flags().IntVar(&limit, "limit", memory.DefaultList, "maximum number of items")
	return cmd
}

func (m memories) collections(cmd *cobra.Command, client *dispatcher.Client, s *conn.Shared) error {
	all, err := client.Memory().Collections(cmd.Context(), s.Tenant)
	switch {
	case err != nil:
		return explainMemory(err, s.Tenant)
	case s.Output.JSON:
		return conn.WriteLines(m.Caller, cmd, all.Collections)
	case len(all.Collections) == 0:
		return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("no collections of tenant %s\n", s.Tenant))
	}
	table := render.NewTable(cmd.OutOrStdout())
	table.Row("NAME", "ITEMS", "BYTES")
	for _, c := range all.Collections {
		table.Row(c.Name, strconv.FormatInt(c.Items, 10), strconv.FormatInt(c.Bytes, 10))
	}
	if all.More {
		if err := render.Write(cmd.ErrOrStderr(), "there are more than these\n"); err != nil {
			return err
		}
	}
	return table.Flush()
}

// items lists as many items as are wanted, which may be several pages.
func (m memories) items(cmd *cobra.Command, client *dispatcher.Client, s *conn.Shared, r memory.ListRequest, limit int) error {
	r.Whole, r.Limit = s.Output.JSON, min(limit+1, memory.MaxList)
	table := render.NewTable(cmd.OutOrStdout())
	table.Row("ID", "CREATED", "SCOPE", "SOURCE", "WHAT")
	n := 0
	for it, err := range client.Memory().All(cmd.Context(), r) {
		switch {
		case err != nil:
			return explainMemory(err, s.Tenant)
		case n == limit:
			if err := render.Write(cmd.ErrOrStderr(), "there are more than these: raise --limit\n"); err != nil {
				return err
			}
		case s.Output.JSON:
			if err := m.WriteJSON(cmd, it); err != nil {
				return err
			}
		default:
			table.Row(it.ID, created(it, m.Options.Now()), scopeOf(it), sourceOf(it), firstLine(it.Text))
		}
		if n++; n > limit {
			break
		}
	}
	switch {
	case s.Output.JSON:
		return nil
	case n == 0:
		return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("no items in collection %s of tenant %s\n", r.Name, s.Tenant))
	default:
		return table.Flush()
	}
}

func created(it *memory.Item, now time.Time) string { return render.Span(now.Sub(it.Created)) + " ago" }

// scopeOf says whom an item belongs to.
func scopeOf(it *memory.Item) string {
	var parts []string
	for _, part := range []struct{ name, value string }{{"agent", it.Agent}, {"session", it.Session}, {"subject", it.Subject}} {
		if part.value != "" {
			parts = append(parts, part.name+"="+render.Visible(part.value))
		}
	}
	return cmp.Or(strings.Join(parts, " "), "-")
}

// sourceOf says where an item came from.
func sourceOf(it *memory.Item) string {
	switch src := it.Source; {
	case src.Document != "":
		return fmt.Sprintf("%s#%d", render.Visible(src.Document), src.Part)
	case src.Run != "" && src.Step > 0:
		return fmt.Sprintf("run %s step %d", src.Run, src.Step)
	case src.Run != "":
		return "run " + src.Run
	default:
		return "-"
	}
}

func firstLine(text string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if rest != "" {
		line += " …"
	}
	return render.Visible(line)
}

// show shows one item.
func (m memories) show() *cobra.Command {
	var s conn.Shared
	cmd := &cobra.Command{
		Use: "show COLLECTION ID", Short: "Show an item",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return render.Usagef("needs a collection and the id of one of its items, got %d arguments", len(args))
			}
			return names(args, "collection", "item")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.With(cmd.Context(), func(client *dispatcher.Client) error {
				it, err := client.Memory().Get(cmd.Context(), s.Tenant, args[0], args[1])
				switch {
				case errors.Is(err, dispatcher.ErrNoItem):
					return render.Worded(fmt.Sprintf("collection %s of tenant %s has no item %s: see `longshore memory ls %s`", args[0], s.Tenant, args[1], args[0]), err)
				case err != nil:
					return explainMemory(err, s.Tenant)
				case s.Output.JSON:
					return m.WriteJSON(cmd, it)
				default:
					return m.writeItem(cmd.OutOrStdout(), it)
				}
			})
		},
	}
	s.Register(cmd)
	return cmd
}

func (m memories) writeItem(w io.Writer, it *memory.Item) error {
	table := render.NewTable(w)
	table.Row("created", created(it, m.Options.Now()))
	if !it.Expires.IsZero() {
		table.Row("expires", render.At(it.Expires, m.Options.Now()))
	}
	for _, row := range [][2]string{{"scope", scopeOf(it)}, {"source", sourceOf(it)}, {"tags", render.Visible(strings.Join(it.Tags, ", "))}, {"vector", render.Visible(it.Model)}} {
		if row[1] != "" && row[1] != "-" {
			table.Row(row[0], row[1])
		}
	}
	var fields []string
	for name, value := range it.Fields {
		fields = append(fields, fmt.Sprintf("%s=%v", name, value))
	}
	if slices.Sort(fields); len(fields) > 0 {
		table.Row("fields", render.Visible(strings.Join(fields, " ")))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	text := it.Text
	if !m.Options.Raw {
		text = render.VisibleLines(text)
	}
	return render.Write(w, "\n"+strings.TrimSuffix(text, "\n")+"\n")
}

// search finds items.
func (m memories) search() *cobra.Command {
	var (
		s     conn.Shared
		which scoped
		topK  int
	)
	cmd := &cobra.Command{
		Use: "search COLLECTION QUERY…", Short: "Find the items that fit best, by words and by meaning",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return render.Usagef("needs a collection and what to search for, got %d arguments", len(args))
			}
			if topK < 1 || topK > memory.MaxTopK {
				return render.Usagef("--top-k must be 1 to %d", memory.MaxTopK)
			}
			return names(args[:1], "collection")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.With(cmd.Context(), func(client *dispatcher.Client) error {
				found, err := client.Memory().Search(cmd.Context(), memory.SearchRequest{
					Tenant: s.Tenant, Name: args[0], Filter: which.Filter, Text: strings.Join(args[1:], " "), TopK: topK,
				})
				if err != nil {
					return explainMemory(err, s.Tenant)
				}
				return m.found(cmd, &s, args[0], found)
			})
		},
	}
	s.Register(cmd)
	which.register(cmd)
	cmd.Flags().IntVar(&topK, "top-k", memory.DefaultTopK, "maximum number of items")
	return cmd
}

func (m memories) found(cmd *cobra.Command, s *conn.Shared, collection string, found *memory.Found) error {
	if found.Degraded != "" {
		if err := render.Write(cmd.ErrOrStderr(), render.Visible(found.Degraded)+"\n"); err != nil {
			return err
		}
	}
	switch {
	case s.Output.JSON:
		return conn.WriteLines(m.Caller, cmd, found.Hits)
	case len(found.Hits) == 0:
		return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("nothing found in collection %s of tenant %s\n", collection, s.Tenant))
	}
	table := render.NewTable(cmd.OutOrStdout())
	table.Row("SCORE", "ID", "SOURCE", "WHAT")
	for i := range found.Hits {
		h := &found.Hits[i]
		table.Row(strconv.FormatFloat(h.Score, 'f', 3, 64), h.ID, sourceOf(&h.Item), firstLine(h.Text))
	}
	return table.Flush()
}

// put writes one item.
func (m memories) put() *cobra.Command {
	var (
		s       conn.Shared
		it      memory.Item
		expires time.Duration
		by      string
	)
	cmd := &cobra.Command{
		Use: "put COLLECTION ID TEXT", Short: "Write an item, replacing one with its id",
		Long: "Write an item, replacing one with its id. Without --agent and --session all agents of the tenant may recall it that may use the\n" +
			"collection.",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) != 3:
				return render.Usagef("needs a collection, an id and a text, got %d arguments", len(args))
			case strings.TrimSpace(args[2]) == "":
				return render.Usagef("the text is empty")
			case expires < 0:
				return render.Usagef("--expires must not be negative")
			}
			return names(args[:2], "collection", "item")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			it.ID, it.Text = args[1], args[2]
			if expires > 0 {
				it.Expires = m.Options.Now().Add(expires)
			}
			return m.With(cmd.Context(), func(client *dispatcher.Client) error {
				reply, err := client.Memory().Put(cmd.Context(), memory.PutRequest{Tenant: s.Tenant, Name: args[0], Items: []memory.Item{it}, By: by})
				switch {
				case err != nil:
					return explainMemory(err, s.Tenant)
				case s.Output.JSON:
					return m.WriteJSON(cmd, reply)
				case reply.Written == 0:
					return render.Write(cmd.OutOrStdout(), fmt.Sprintf("item %s is in collection %s as it is\n", args[1], args[0]))
				default:
					return render.Write(cmd.OutOrStdout(), fmt.Sprintf("item %s was written to collection %s\n", args[1], args[0]))
				}
			})
		},
	}
	s.Register(cmd)
	m.ByFlag(cmd, &by)
	flags := cmd.Flags()
	flags.StringVar(&it.Agent, "agent", "", "only this agent may recall it")
	flags.StringVar(&it.Session, "session", "", "only this conversation may recall it")
	flags.StringVar(&it.Subject, "subject", "", "the person or thing that it is about")
	flags.StringArrayVar(&it.Tags, "tag", nil, "a tag of it; may be repeated")
	flags.DurationVar(&expires, "expires", 0, "time after which it is gone, such as 720h")
	return cmd
}

// rm removes items.
func (m memories) rm() *cobra.Command {
	var (
		s  conn.Shared
		by string
	)
	cmd := &cobra.Command{
		Use: "rm COLLECTION ID…", Short: "Remove items",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) < 2:
				return render.Usagef("needs a collection and the ids of items, got %d arguments", len(args))
			case len(args)-1 > memory.MaxDelete:
				return render.Usagef("removes %d items at once, got %d", memory.MaxDelete, len(args)-1)
			}
			kinds := append([]string{"collection"}, slices.Repeat([]string{"item"}, len(args)-1)...)
			return names(args, kinds...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.With(cmd.Context(), func(client *dispatcher.Client) error {
				n, err := client.Memory().Delete(cmd.Context(), memory.DeleteRequest{Tenant: s.Tenant, Name: args[0], IDs: args[1:], By: by})
				switch {
				case err != nil:
					return explainMemory(err, s.Tenant)
				case s.Output.JSON:
					return m.WriteJSON(cmd, memory.DeleteReply{Deleted: n})
				case n == 0:
					return fmt.Errorf("collection %s of tenant %s has none of these items: see `longshore memory ls %s`", args[0], s.Tenant, args[0])
				default:
					return render.Write(cmd.OutOrStdout(), fmt.Sprintf("%d of %s removed from collection %s\n", n, render.Count(int64(len(args)-1), "item"), args[0]))
				}
			})
		},
	}
	s.Register(cmd)
	m.ByFlag(cmd, &by)
	return cmd
}

// names refuses arguments that cannot be the names of what they stand for.
func names(args []string, kinds ...string) error {
	for i, kind := range kinds[:min(len(kinds), len(args))] {
		if !strict.ValidToken(args[i]) {
			return render.Usagef("the name of a %s is 1 to 64 characters of A-Z a-z 0-9 _ -", kind)
		}
	}
	return nil
}

func explainMemory(err error, tenant string) error {
	switch {
	case errors.Is(err, dispatcher.ErrMemoryFull):
		return render.Worded(render.Visible(strings.TrimPrefix(err.Error(), "the long-term memory of the tenant is full: ")), err)
	default:
		return render.Explain(err, messages.Ref{Tenant: tenant})
	}
}
