package runs

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/manifest"
)

// fileChange is a file that differs between two steps.
type fileChange struct {
	Name   string              `json:"name"`
	Change string              `json:"change"` // added, changed or removed
	Before *messages.SavedFile `json:"before,omitempty"`
	After  *messages.SavedFile `json:"after,omitempty"`
}

func (c files) diff() *cobra.Command {
	var v version
	cmd := &cobra.Command{
		Use: "diff ID", Short: "Show what a run changed in its files",
		Long: "Show what a run changed in its files, as a unified diff: from before its first step to its last, or what --step changed.\n" +
			"Files that are not text, or larger than 1 MiB, are only named. With -o json each file is one line, without contents.",
		Args: v.One(),
		RunE: func(cmd *cobra.Command, args []string) error {
			step, err := v.at(cmd)
			if err != nil {
				return err
			}
			if step != nil && *step == 0 {
				return render.Usagef("--step: must be 1 or more: there is nothing before the first step to compare with")
			}
			return c.WithRun(cmd, &v.OfRun, args, func(client *dispatcher.Client, run messages.Ref) error {
				before := 0
				if step != nil {
					before = *step - 1
				}
				old, err := client.Files().List(cmd.Context(), run, dispatcher.FilesAt{Step: &before})
				if err != nil {
					return render.Explain(err, run)
				}
				now, err := client.Files().List(cmd.Context(), run, dispatcher.FilesAt{Step: step})
				if err != nil {
					return render.Explain(err, run)
				}
				return c.showChanges(cmd, &v, client, run, old, now)
			})
		},
	}
	v.register(cmd, "only what this step changed")
	return cmd
}

func (c files) showChanges(cmd *cobra.Command, v *version, client *dispatcher.Client, run messages.Ref, old, now *control.FileList) error {
	changes := changesOf(old, now)
	if len(changes) == 0 && !v.Output.JSON {
		return render.Write(cmd.ErrOrStderr(), "no files differ\n")
	}
	for _, f := range changes {
		if v.Output.JSON {
			if err := c.WriteJSON(cmd, &f); err != nil {
				return err
			}
			continue
		}
		shown, err := unified(cmd, client, run, &f, old.Manifest, now.Manifest)
		if err != nil {
			return explainFile(err, run)
		}
		if !c.Options.Raw {
			shown = render.VisibleLines(shown)
		}
		if err := render.Write(cmd.OutOrStdout(), shown); err != nil {
			return err
		}
	}
	return nil
}

// changesOf are the files that differ, by kind of change and name.
func changesOf(old, now *control.FileList) []fileChange {
	before, from := listed(old)
	after, to := listed(now)
	differ := manifest.Compare(from, to)
	var out []fileChange
	for _, kind := range []struct {
		name  string
		files []manifest.File
	}{{"added", differ.Added}, {"changed", differ.Changed}, {"removed", differ.Removed}} {
		for _, f := range kind.files {
			out = append(out, fileChange{Name: f.Path, Change: kind.name, Before: before[f.Path], After: after[f.Path]})
		}
	}
	return out
}

// listed is a list by name, and as a manifest.
func listed(list *control.FileList) (map[string]*messages.SavedFile, *manifest.Manifest) {
	by, m := map[string]*messages.SavedFile{}, &manifest.Manifest{}
	for i := range list.Files {
		f := &list.Files[i]
		by[f.Name] = f
		m.Files = append(m.Files, manifest.File{Path: f.Name, Size: f.Size, Hash: f.Hash, Exec: f.Exec})
	}
	return by, m
}

// unified is the change of a file in lines, or a line that names it.
func unified(cmd *cobra.Command, client *dispatcher.Client, run messages.Ref, f *fileChange, old, now string) (string, error) {
	name := render.Visible(f.Name)
	from, to := "/dev/null", "/dev/null"
	var before, after string
	whole := true
	for _, side := range []struct {
		file   *messages.SavedFile
		list   string
		label  *string
		prefix string
		into   *string
	}{{f.Before, old, &from, "a/", &before}, {f.After, now, &to, "b/", &after}} {
		if side.file == nil {
			continue
		}
		*side.label = side.prefix + name
		if side.file.Size > maxShown || !whole {
			whole = false
			continue
		}
		var err error
		if *side.into, whole, err = text(cmd.Context(), client, run, f.Name, side.list); err != nil {
			return "", err
		}
	}
	if !whole {
		return fmt.Sprintf("Files %s and %s differ\n", from, to), nil
	}
	diff, err := render.Unified(from, to, before, after)
	if diff == "" && err == nil { // an empty file, or one that only may be executed now
		diff = fmt.Sprintf("File %s was %s\n", name, f.Change)
	}
	return diff, err
}
