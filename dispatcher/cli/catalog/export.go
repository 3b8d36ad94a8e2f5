package catalog

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/erasure"
	"github.com/longshore-run/longshore/messages/memory"
)

// exportFormat names what an archive is.
const exportFormat = "longshore.export.v1"

// export writes all that is kept of a tenant, a conversation or a person into an archive.
func (m memories) export() *cobra.Command {
	var (
		w            whose
		tenant, file string
	)
	cmd := &cobra.Command{
		Use: "export", Short: "Write all that is kept of a tenant, a conversation or a person to an archive",
		Long: "Write all that is kept of a person (--subject), a conversation (--session), or with --tenant alone of a tenant to a tar.gz: the logs,\n" +
			"events, feedback, log entries and files of runs, items of long-term memory, sessions and dead letters, as JSON lines. The file must\n" +
			"not exist; only its owner may read it.",
		Example: "  longshore memory export --tenant acme --subject customer-17 -o customer-17.tar.gz",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := w.check(cmd, tenant); err != nil {
				return err
			}
			if file == "" {
				file = "longshore-export-" + w.Tenant + ".tar.gz"
			}
			return m.With(cmd.Context(), func(client *dispatcher.Client) error {
				return exportTo(cmd, client, &w, file, m.Options.Now())
			})
		},
	}
	w.register(cmd)
	cmd.Flags().StringVar(&tenant, "tenant", messages.DefaultTenant, "tenant whose data it is")
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write, - for the standard output; default longshore-export-TENANT.tar.gz")
	return cmd
}

func exportTo(cmd *cobra.Command, client *dispatcher.Client, w *whose, file string, now time.Time) (err error) {
	out := cmd.OutOrStdout()
	if file != "-" {
		const ownerOnly = 0o600
		f, err := os.OpenFile(filepath.Clean(file), os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerOnly)
		if err != nil {
			return fmt.Errorf("write the archive: %w", err)
		}
		defer func() {
			if err = errors.Join(err, f.Close()); err != nil {
				err = errors.Join(err, os.Remove(f.Name())) // a part of it would pass for all
			}
		}()
		out = f
	}
	a := newArchive(out, now)
	if err := a.fill(cmd.Context(), client, &w.Scope, cmd.ErrOrStderr()); err != nil {
		return explainMemory(err, w.Tenant)
	}
	if err := a.close(); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return render.Write(cmd.ErrOrStderr(), fmt.Sprintf("%s: %s, %s of long-term memory written to %s\n", w.String(), render.Count(int64(a.about.Runs), "run"), render.Count(a.about.Items, "item"), file))
}

// archive is a tar.gz that is being written.
type archive struct {
	zip   *gzip.Writer
	tar   *tar.Writer
	at    time.Time
	about exported
}

// exported is export.json, the last file of an archive.
type exported struct {
	Format  string        `json:"format"`
	Of      erasure.Scope `json:"of"`
	At      time.Time     `json:"at"`
	Runs    int           `json:"runs"`
	Items   int64         `json:"items"`
	Left    []string      `json:"left,omitempty"`    // what the dispatcher does not reach
	Missing []string      `json:"missing,omitempty"` // what could not be read, and why
}

func newArchive(w io.Writer, at time.Time) *archive {
	zip := gzip.NewWriter(w)
	return &archive{zip: zip, tar: tar.NewWriter(zip), at: at.UTC()}
}

func (a *archive) close() error { return errors.Join(a.tar.Close(), a.zip.Close()) }

// header begins a file of the archive.
func (a *archive) header(name string, size int64) error {
	const ownerOnly = 0o600
	return a.tar.WriteHeader(&tar.Header{Name: name, Mode: ownerOnly, Size: size, ModTime: a.at, Typeflag: tar.TypeReg})
}

// lines writes a file with the values of a function as JSON lines, none if there are none. Of what cannot be read is told why.
func (a *archive) lines(name string, each func(add func(any) error) error) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := each(enc.Encode)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case err != nil:
		a.about.Missing = append(a.about.Missing, name+": "+err.Error())
	}
	if out.Len() == 0 {
		return nil
	}
	if err := a.header(name, int64(out.Len())); err != nil {
		return err
	}
	_, err = a.tar.Write(out.Bytes())
	return err
}

func (a *archive) fill(ctx context.Context, client *dispatcher.Client, s *erasure.Scope, progress io.Writer) error {
	a.about = exported{Format: exportFormat, Of: *s, At: a.at}
	kept := map[string]bool{} // runs of the scope
	for page, err := range client.Data().Find(ctx, *s) {
		if err != nil {
			return err
		}
		a.about.Left = append(a.about.Left, page.Left...)
		for _, id := range append(page.Runs, page.Busy...) {
			kept[id] = true
			if err := a.run(ctx, client, messages.Ref{Tenant: s.Tenant, Run: id}); err != nil {
				return err
			}
			a.about.Runs++
		}
		if page.Next != "" {
			if err := render.Write(progress, render.Count(int64(a.about.Runs), "run")+" written\n"); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(a.memory(ctx, client, s, kept), a.rest(ctx, client, s, kept)); err != nil {
		return err
	}
	text, err := json.MarshalIndent(a.about, "", "  ")
	if err == nil {
		err = a.header("export.json", int64(len(text)))
	}
	if err != nil {
		return fmt.Errorf("write export.json: %w", err)
	}
	_, err = a.tar.Write(text)
	return err
}

// run writes the folder of a run.
func (a *archive) run(ctx context.Context, client *dispatcher.Client, run messages.Ref) error {
	in := "runs/" + run.Run + "/"
	return errors.Join(
		a.lines(in+"log.jsonl", func(add func(any) error) error { return addLog(ctx, client, run, add) }),
		a.lines(in+"events.jsonl", func(add func(any) error) error {
			for e, err := range client.Data().Events(ctx, run) {
				if err == nil {
					err = add(e)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}),
		a.lines(in+"feedback.jsonl", func(add func(any) error) error {
			list, err := client.Runs().Feedback(ctx, run)
			if err != nil {
				return absent(err)
			}
			for i := range list.Feedback {
				if err := add(&list.Feedback[i]); err != nil {
					return err
				}
			}
			return nil
		}),
		a.lines(in+"entries.jsonl", func(add func(any) error) error {
			for e, err := range client.Runs().Logs(ctx, run, dispatcher.LogOptions{}) {
				if err == nil {
					err = add(e)
				}
				if err != nil {
					return absent(err)
				}
			}
			return nil
		}),
		a.files(ctx, client, run, in+"files/"),
	)
}

// absent is nil for what a run need not have.
func absent(err error) error {
	if errors.Is(err, dispatcher.ErrNotFound) || errors.Is(err, dispatcher.ErrNotBegun) || errors.Is(err, dispatcher.ErrNoFile) {
		return nil
	}
	return err
}

func addLog(ctx context.Context, client *dispatcher.Client, run messages.Ref, add func(any) error) error {
	const entries = 1000
	for after, more := uint64(0), true; more; {
		page, err := client.Runs().LogPage(ctx, run, after, entries)
		if err != nil {
			return absent(err)
		}
		for i := range page.Entries {
			if err := add(&page.Entries[i]); err != nil {
				return err
			}
			after = page.Entries[i].Seq
		}
		more = page.More
	}
	return nil
}

// files writes the files that a run saved last. One that cannot be read as a whole ends the export: the archive would be damaged.
func (a *archive) files(ctx context.Context, client *dispatcher.Client, run messages.Ref, in string) error {
	list, err := client.Files().List(ctx, run, dispatcher.FilesAt{})
	if err != nil {
		if err = absent(err); err != nil {
			a.about.Missing = append(a.about.Missing, in+": "+err.Error())
		}
		return ctx.Err()
	}
	for _, f := range list.Files {
		name := path.Clean("/" + f.Name)[1:]
		if name == "" || name != f.Name {
			a.about.Missing = append(a.about.Missing, in+f.Name+": not a name within the folder")
			continue
		}
		if err := a.header(in+name, f.Size); err != nil {
			return err
		}
		if _, err := client.Files().Get(ctx, run, f.Name, dispatcher.FilesAt{Manifest: list.Manifest}, a.tar); err != nil {
			return fmt.Errorf("read file %s of run %s: %w", f.Name, run.Run, err)
		}
	}
	return nil
}

// memory writes items of long-term memory, a file for each collection.
func (a *archive) memory(ctx context.Context, client *dispatcher.Client, s *erasure.Scope, kept map[string]bool) error {
	all, err := client.Memory().Collections(ctx, s.Tenant)
	if err != nil {
		a.about.Missing = append(a.about.Missing, "memory/: "+err.Error())
		return ctx.Err()
	}
	for _, c := range all.Collections {
		err := a.lines("memory/"+c.Name+".jsonl", func(add func(any) error) error {
			for it, err := range client.Memory().All(ctx, memory.ListRequest{Tenant: s.Tenant, Name: c.Name, Whole: true}) {
				if err != nil {
					return err
				}
				if !s.Whole() && (s.Session == "" || it.Session != s.Session) && (s.Subject == "" || it.Subject != s.Subject) && !kept[it.Source.Run] {
					continue
				}
				a.about.Items++
				if err := add(it); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rest writes sessions and dead letters.
func (a *archive) rest(ctx context.Context, client *dispatcher.Client, s *erasure.Scope, kept map[string]bool) error {
	return errors.Join(
		a.lines("sessions.jsonl", func(add func(any) error) error {
			list, err := client.Sessions().List(ctx, s.Tenant)
			if err != nil {
				return err
			}
			for i := range list.Sessions {
				if st := &list.Sessions[i]; s.Whole() || st.Name == s.Session {
					if err := add(st); err != nil {
						return err
					}
				}
			}
			return nil
		}),
		a.lines("dead-letters.jsonl", func(add func(any) error) error {
			var req control.DeadListRequest
			req.Tenant = s.Tenant
			for more := true; more; more = req.After != 0 {
				list, err := client.DeadLetters().List(ctx, req)
				if err != nil {
					return err
				}
				for i := range list.Letters {
					if l := &list.Letters[i]; s.Whole() || kept[l.Run] {
						whole, err := client.DeadLetters().Get(ctx, control.DeadRequest{Tenant: s.Tenant, Seq: l.Seq})
						if err == nil {
							err = add(whole)
						}
						if err != nil && !errors.Is(err, dispatcher.ErrNoLetter) {
							return err
						}
					}
				}
				req.After = list.Next
			}
			return nil
		}),
	)
}
