package memory

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/deploy/command/memory/parts"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// atOnce is how many documents are read and stored at a time.
const atOnce = 4

// importing is what the flags of import ask for.
type importing struct {
	conn.Caller
	conn.Shared

	collection string
	tags       []string
	cut        parts.Cut
	stdin      string
	by         string
	dry, force bool
	prune      bool // remove documents that a folder no longer has
	sure       bool // do not ask before
}

// Import is `longshore memory import`.
func Import(connect conn.Connect, o report.Options) *cobra.Command {
	i := &importing{Caller: conn.Caller{Connect: connect, Options: o.WithDefaults()}, cut: parts.DefaultCut}
	cmd := &cobra.Command{
		Use: "import FILE|DIR|-…", Short: "Store documents in a collection, cut into parts",
		Long: "Store texts, Markdown, HTML and the text of PDF files in a collection, cut into parts at their headings and paragraphs. A\n" +
			"document that is imported again replaces its parts, and one that has not changed is skipped: an import that was interrupted is\n" +
			"continued by the same command. Of folders the rules of .gitignore and .longshoreignore hold, and files that look like secrets\n" +
			"are left out; with --prune documents that a folder no longer has are removed from the collection. This process reads the documents; the dispatcher stores the parts, with vectors if the fleet has a model for them.",
		Example: "  longshore memory import manual.pdf docs --collection manuals\n" +
			"  curl -s https://example.com/fees.html | longshore memory import - --name fees.html --collection manuals",
		Args: func(cmd *cobra.Command, args []string) error { return i.check(args) },
		RunE: func(cmd *cobra.Command, args []string) error { return i.run(cmd, args) },
	}
	i.Register(cmd)
	if tenant := i.Options.Tenant; tenant != "" {
		f := cmd.PersistentFlags().Lookup("tenant")
		f.DefValue = tenant
		i.Tenant = tenant
	}
	i.ByFlag(cmd, &i.by)
	flags := cmd.Flags()
	flags.StringVar(&i.collection, "collection", "", "where the parts are stored; required")
	flags.StringArrayVar(&i.tags, "tag", nil, "a tag of each part; may be repeated")
	flags.Var(&i.cut.Size, "chunk-size", "of a part at most: tokens, of about four bytes each, or characters such as 1600c")
	flags.Var(&i.cut.Overlap, "overlap", "of the part before that a part repeats, likewise")
	flags.StringVar(&i.stdin, "name", "stdin", "name of the document on the standard input; its ending says what it is")
	flags.BoolVar(&i.dry, "dry-run", false, "read and cut the documents, and store nothing")
	flags.BoolVar(&i.prune, "prune", false, "also remove documents from the collection that a folder no longer has")
	flags.BoolVar(&i.sure, "yes", false, "with --prune: remove them without a question")
	flags.BoolVar(&i.force, "force", false, "also store documents that have not changed, after a change of the model for vectors")
	return cmd
}

// check refuses a command line that cannot be meant.
func (i *importing) check(args []string) error {
	if len(args) == 0 {
		return render.Usagef("needs files, folders, or - for the standard input")
	}
	if i.collection == "" && (!i.dry || i.prune) {
		return render.Usagef("--collection is missing: say where the parts are stored")
	}
	if i.collection != "" && !strict.ValidToken(i.collection) {
		return render.Usagef("--collection must be 1 to 64 characters of A-Z a-z 0-9 _ -")
	}
	if err := strict.CheckToken("tenant", i.Tenant); err != nil {
		return render.Misuse(err)
	}
	if err := i.cut.Check(); err != nil {
		return render.Misuse(err)
	}
	_, err := longterm.CheckItems([]longterm.Item{{ID: "a", Tags: i.tags, Source: longterm.Source{Document: i.stdin}}}, i.Options.Now())
	if f, ok := errors.AsType[*messages.FieldError](err); ok {
		if f.Field == "items[0].source.document" {
			return render.Usagef("--name: %s", f.Reason)
		}
		return render.Usagef("--tag: %s", f.Reason)
	}
	return nil
}

func (i *importing) run(cmd *cobra.Command, args []string) error {
	var from sources
	defer from.close()
	for _, arg := range args {
		if err := from.add(cmd, arg, i.stdin); err != nil {
			return render.OneLine(err)
		}
	}
	if err := render.Write(cmd.ErrOrStderr(), from.notTaken); err != nil {
		return err
	}
	if i.prune {
		if err := from.checkPruned(); err != nil {
			return err
		}
		i.onTerminal(cmd, args)
	}
	if len(from.documents) == 0 && !i.prune {
		return errors.New("there are no documents to import")
	}
	k := &keeper{importing: i, reader: parts.New()}
	if i.dry && !i.prune {
		return errors.Join(i.all(cmd, k, from.documents, nil), k.reader.Close())
	}
	err := i.With(cmd.Context(), func(client *dispatcher.Client) error {
		var lost []gone
		if i.prune {
			var err error
			if lost, err = i.gone(cmd.Context(), client, &from); err != nil {
				return err
			}
		}
		if i.dry {
			return i.all(cmd, k, from.documents, lost)
		}
		switch may, err := i.mayRemove(cmd, lost); {
		case err != nil:
			return err
		case !may:
			return render.Write(cmd.OutOrStdout(), "Nothing was imported or removed. Without --prune no document is removed.\n")
		}
		k.client = client
		return i.all(cmd, k, from.documents, lost)
	})
	return errors.Join(err, k.reader.Close())
}

// all imports the documents, some at a time, and then removes those that are lost. One that cannot be read does not keep the others from being
// imported, but nothing is removed then.
func (i *importing) all(cmd *cobra.Command, k *keeper, documents []source, lost []gone) error {
	t := &tally{importing: i, cmd: cmd, all: len(documents) + len(lost), bar: report.Bar{Options: &i.Options, Out: cmd.ErrOrStderr()}}
	k.progress = t.stored
	seen := map[string]bool{}
	group, ctx := errgroup.WithContext(cmd.Context())
	group.SetLimit(atOnce)
	for at := range documents {
		d := &documents[at]
		if seen[d.name] || ctx.Err() != nil {
			t.skip()
			continue
		}
		seen[d.name] = true
		group.Go(func() error {
			out, err := k.keep(ctx, d)
			if err != nil {
				return err
			}
			return t.ended(out)
		})
	}
	err := group.Wait()
	if err == nil && t.of[statusFailed] == 0 {
		err = k.removeGone(cmd.Context(), lost, t)
	}
	t.bar.Clear()
	return t.end(err)
}

// outcome is what became of a document, as it is printed.
type outcome struct {
	Document string `json:"document"`
	Status   string `json:"status"` // imported, unchanged, read, left out, failed, or of one that its folder no longer has, removed or gone
	Parts    int    `json:"parts,omitempty"`
	Removed  int    `json:"removed,omitempty"` // parts that were removed, or would be
	Pages    int    `json:"pages,omitempty"`
	Title    string `json:"title,omitempty"`
	Error    string `json:"error,omitempty"`
}

const (
	statusImported  = "imported"
	statusUnchanged = "unchanged"
	statusRead      = "read"
	statusLeftOut   = "left out"
	statusFailed    = "failed"
	statusRemoved   = "removed"
	statusGone      = "gone" // would be removed
)

// tally counts what became of the documents, and tells it.
type tally struct {
	*importing

	cmd *cobra.Command
	all int

	mu          sync.Mutex
	bar         report.Bar
	of          map[string]int
	done, parts int
}

func (t *tally) skip() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all--
}

// stored says that parts were stored.
func (t *tally) stored(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.parts += n
	t.draw()
}

func (t *tally) draw() {
	t.bar.Draw(fmt.Sprintf("%s %d of %s, %s", report.Cells(t.done, t.all), t.done, render.Count(int64(t.all), "document"), render.Count(int64(t.parts), "part")))
}

// ended tells what became of a document.
func (t *tally) ended(out outcome) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]int{}
	}
	t.of[out.Status]++
	t.done++
	if t.dry {
		t.parts += out.Parts
	}
	switch {
	case t.Output.JSON:
		t.bar.Clear()
		if err := t.WriteJSON(t.cmd, &out); err != nil {
			return err
		}
	case out.Status == statusFailed || out.Status == statusLeftOut:
		t.bar.Clear()
		if err := render.Write(t.cmd.ErrOrStderr(), render.Visible(out.Document+": "+out.Error)+"\n"); err != nil {
			return err
		}
	case t.dry:
		what := render.Count(int64(out.Parts), "part")
		if out.Status == statusGone {
			what = "gone, " + render.Count(int64(out.Removed), "part") + " would be removed"
		}
		if err := render.Write(t.cmd.OutOrStdout(), render.Visible(out.Document)+": "+what+"\n"); err != nil {
			return err
		}
	}
	t.draw()
	return nil
}

// end sums up. The error says why not all documents were looked at.
func (t *tally) end(err error) error {
	text := fmt.Sprintf("%d imported with %s", t.of[statusImported], render.Count(int64(t.parts), "part"))
	if t.dry {
		text = fmt.Sprintf("%d read with %s, nothing was stored", t.of[statusRead], render.Count(int64(t.parts), "part"))
	}
	var also []string
	for _, status := range []string{statusUnchanged, statusRemoved, statusGone, statusLeftOut, statusFailed} {
		if n := t.of[status]; n > 0 {
			also = append(also, fmt.Sprintf("%d %s", n, status))
		}
	}
	text = strings.Join(append([]string{text}, also...), ", ")
	switch {
	case err != nil && render.WasInterrupted(t.cmd.Context()):
		return &render.Interrupted{Text: fmt.Sprintf("Interrupted after %d of %s: %s. The same command continues.", t.done, render.Count(int64(t.all), "document"), text), Err: err}
	case err != nil:
		told := render.Explain(err, messages.Ref{Tenant: t.Tenant})
		return render.Worded(fmt.Sprintf("%s; after %d of %s: %s: the same command continues", render.Visible(told.Error()), t.done, render.Count(int64(t.all), "document"), text), err)
	case !t.Output.JSON:
		if err := render.Write(t.cmd.OutOrStdout(), text+"\n"); err != nil {
			return err
		}
	}
	if n := t.of[statusFailed]; n > 0 {
		text := fmt.Sprintf("%d of %s could not be imported", n, render.Count(int64(t.done), "document"))
		if t.prune {
			text += ", and so none was removed"
		}
		return errors.New(text)
	}
	return nil
}
