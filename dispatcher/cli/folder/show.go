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
	if err := render.Write(out, f.leftOut()+"Uploading "+render.Count(files, "file")+", "+render.Count(size, "byte")+".\n"); err != nil {
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

// leftOut names what is not uploaded. What rules leave out is counted, for its owner has listed it.
func (f *Folder) leftOut() string {
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
		text.WriteString(render.Visible("Not uploaded: "+l.Path+": "+l.Why+advice(l)) + "\n")
	}
	if more := named - maxNamed; more > 0 {
		fmt.Fprintf(&text, "Not uploaded: %d more such names\n", more)
	}
	if ignored > 0 {
		text.WriteString("Not uploaded: " + render.Count(ignored, "name") + " that the rules of .longshoreignore and .gitignore leave out\n")
	}
	return text.String()
}

func advice(l LeftOut) string {
	if l.Why != WhySecret {
		return ""
	}
	return "; to upload it, list it in " + ignoreFile + " as !/" + l.Path
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
