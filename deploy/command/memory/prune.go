package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/folder"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/dispatcher/cli/report"
	"github.com/longshore-run/longshore/messages/memory"
)

// root is a folder of a command line, under which documents have their names.
type root struct {
	prefix string
	unread []string // names below it, of folders and files that could not be read: what they hold is not known
}

// rootOf returns the root of a folder that was listed under a name.
func rootOf(name string, f *folder.Folder) root {
	r := root{prefix: strings.TrimSuffix(name, "/") + "/"}
	for _, l := range f.LeftOut {
		if l.Why == folder.WhyUnreadable {
			r.unread = append(r.unread, r.prefix+l.Path)
		}
	}
	return r
}

// lacks reports whether a document with a name below the folder is not there, of those that could be seen.
func (r *root) lacks(name string) bool {
	return strings.HasPrefix(name, r.prefix) && !slices.ContainsFunc(r.unread, func(at string) bool { return name == at || strings.HasPrefix(name, at+"/") })
}

// checkPruned refuses what no document can be said to be missing from.
func (s *sources) checkPruned() error {
	if len(s.roots) == 0 {
		return render.Usagef("--prune needs a folder: it removes documents that a folder no longer has")
	}
	for _, r := range s.roots {
		if r.prefix == "./" || strings.HasSuffix("/"+r.prefix, "/../") {
			return render.Usagef("--prune needs a folder with a name of its own, not %s: other documents have names below it too. Name it from the folder above", strings.TrimSuffix(r.prefix, "/"))
		}
	}
	return nil
}

// gone is a document of the collection that its folder no longer has.
type gone struct {
	name string
	ids  []string // of its parts
}

// gone returns the documents of the collection with names below the folders that were named, and that are not imported now. Only items that an import
// has written count.
func (i *importing) gone(ctx context.Context, client *dispatcher.Client, from *sources) (all []gone, _ error) {
	now, at := map[string]bool{}, map[string]int{}
	for d := range from.documents {
		now[from.documents[d].name] = true
	}
	for it, err := range client.Memory().All(ctx, memory.ListRequest{Tenant: i.Tenant, Name: i.collection, Limit: memory.MaxList}) {
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", i.collection, err)
		}
		name := it.Source.Document
		lacks := func(r root) bool { return r.lacks(name) }
		if now[name] || it.ID != partID(name, it.Source.Part) || !slices.ContainsFunc(from.roots, lacks) {
			continue
		}
		if _, known := at[name]; !known {
			at[name] = len(all)
			all = append(all, gone{name: name})
		}
		all[at[name]].ids = append(all[at[name]].ids, it.ID)
	}
	slices.SortFunc(all, func(a, b gone) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// maxGone is how many documents a question names.
const maxGone = 10

// mayRemove reports whether documents may be removed, which it names: --yes says so, or the person at the terminal.
func (i *importing) mayRemove(cmd *cobra.Command, all []gone) (bool, error) {
	if len(all) == 0 || i.sure {
		return true, nil
	}
	n := int64(0)
	for _, g := range all {
		n += int64(len(g.ids))
	}
	what := fmt.Sprintf("%s of %s that are gone from their folders", render.Count(n, "part"), render.Count(int64(len(all)), "document"))
	if i.Options.Ask == nil {
		return false, render.Usagef("this removes %s, such as %s: check with --dry-run, then give --yes", what, all[0].name)
	}
	for _, g := range all[:min(len(all), maxGone)] {
		if err := render.Write(cmd.ErrOrStderr(), render.Visible(g.name)+"\n"); err != nil {
			return false, err
		}
	}
	if more := len(all) - maxGone; more > 0 {
		if err := render.Write(cmd.ErrOrStderr(), fmt.Sprintf("and %d more\n", more)); err != nil {
			return false, err
		}
	}
	yes, err := i.Options.Ask.Confirm(cmd.Context(), cmd.ErrOrStderr(), "Remove "+what+"?", false)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return yes, err
}

// remove removes documents, each told to the tally.
func (k *keeper) removeGone(ctx context.Context, all []gone, t *tally) error {
	for _, g := range all {
		if k.dry {
			if err := t.ended(outcome{Document: g.name, Status: statusGone, Removed: len(g.ids)}); err != nil {
				return err
			}
			continue
		}
		for ids := range slices.Chunk(g.ids, memory.MaxDelete) {
			if _, err := k.client.Memory().Delete(ctx, memory.DeleteRequest{Tenant: k.Tenant, Name: k.collection, IDs: ids, By: k.by}); err != nil {
				return fmt.Errorf("remove %s: %w", g.name, err)
			}
		}
		if err := t.ended(outcome{Document: g.name, Status: statusRemoved, Removed: len(g.ids)}); err != nil {
			return err
		}
	}
	return nil
}

// onTerminal gives the command a person to ask, if it has a terminal whose input is not a document.
func (i *importing) onTerminal(cmd *cobra.Command, args []string) {
	in, isFile := cmd.InOrStdin().(*os.File)
	if i.Options.Ask == nil && isFile && render.IsTerminal(in) && render.IsTerminal(cmd.ErrOrStderr()) && !slices.Contains(args, render.FromInput) {
		i.Options.Ask = report.NewAsker(in)
	}
}
