package folder

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

// maxNamed is how many names of one kind are shown.
const maxNamed = 20

// Send says what of the folder is uploaded and what is left out, and uploads it, on a terminal with its progress. It returns the manifest
// for a task.
func (f *Folder) Send(ctx context.Context, client *dispatcher.Client, tenant string, out io.Writer, terminal bool) (hash string, err error) {
	files, size := int64(len(f.Files.Files)), f.Files.Bytes()
	if err := render.Write(out, f.NotTaken("upload", "uploaded")+f.secrets()+"Uploading "+render.Count(files, "file")+", "+render.Count(size, "byte")+".\n"); err != nil {
		return "", err
	}
	if !terminal {
		return f.Upload(ctx, client, tenant, nil)
	}
	var mu sync.Mutex
	var done, bytes int64
	hash, err = f.Upload(ctx, client, tenant, func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		done++
		bytes += n
		if every := max(1, files/100); done%every == 0 {
			_ = render.Write(out, fmt.Sprintf("\r\x1b[K%d of %d files, %d of %d bytes", done, files, bytes, size)) // a line that is lost changes nothing
		}
	})
	_ = render.Write(out, "\r\x1b[K")
	return hash, err
}

// NotTaken names what is left out, in the words for what is done with the rest, such as "upload" and "uploaded". What rules leave out is
// counted, for its owner has listed it.
func (f *Folder) NotTaken(do, done string) string {
	var text strings.Builder
	ignored, named := int64(0), 0
	for _, l := range f.LeftOut {
		if l.Why == WhyIgnored {
			ignored++
			continue
		}
		if named++; named > maxNamed {
			continue
		}
		text.WriteString(render.Visible("Not "+done+": "+l.Path+": "+l.Why+advice(l, do)) + "\n")
	}
	if more := named - maxNamed; more > 0 {
		fmt.Fprintf(&text, "Not %s: %d more such names\n", done, more)
	}
	if ignored > 0 {
		text.WriteString("Not " + done + ": " + render.Count(ignored, "name") + " that the rules of .longshoreignore and .gitignore leave out\n")
	}
	return text.String()
}

// secrets names what is uploaded although it looks like a secret. The list that says so may be that of a repository from someone else.
func (f *Folder) secrets() string {
	if len(f.rules.own) == 0 {
		return ""
	}
	var text strings.Builder
	named, patterns := 0, secrets()
	for i := range f.Files.Files {
		name := f.Files.Files[i].Path
		if !isSecret(patterns, name) {
			continue
		}
		if named++; named <= maxNamed {
			text.WriteString(render.Visible("Uploading "+name+", which looks like a secret: a "+ignoreFile+" lists it") + "\n")
		}
	}
	if more := named - maxNamed; more > 0 {
		fmt.Fprintf(&text, "Uploading %d more such names\n", more)
	}
	return text.String()
}

func advice(l LeftOut, do string) string {
	if l.Why != WhySecret {
		return ""
	}
	return "; to " + do + " it, list it in " + ignoreFile + " as !/" + l.Path
}

// Text lists the changes, with what stands in the way of some.
func (b *Back) Text(overwrite bool) string {
	var text strings.Builder
	for i := range b.Changes {
		c := &b.Changes[i]
		line := string(c.Kind) + " " + c.Path
		if c.Kind != Removed {
			line += " (" + render.Count(c.Size, "byte")
			if c.Exec {
				line += ", executable"
			}
			line += ")"
		}
		switch {
		case c.Refused != "":
			line += ": not written: " + c.Refused
		case c.Conflict != "" && overwrite:
			line += ": " + c.Conflict
		case c.Conflict != "":
			line += ": not written without --overwrite: " + c.Conflict
		}
		text.WriteString("  " + render.Visible(line) + "\n")
	}
	return text.String()
}
