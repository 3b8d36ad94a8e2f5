package files

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
)

// maxListed is how many paths a model gets; more would drown its task.
const maxListed = 1000

type listArgs struct{}

func listFiles(ctx context.Context, c tools.Call, _ listArgs) (tools.Result, error) {
	names, err := c.Workspace.List(ctx)
	more := errors.Is(err, sandbox.ErrMore)
	if err != nil && !more {
		return tools.Result{}, err
	}
	if len(names) > maxListed {
		names, more = names[:maxListed], true
	}
	for i, name := range names {
		names[i] = line(name)
	}
	text := strings.Join(names, "\n")
	if more {
		text += fmt.Sprintf("\n(There are more files; these are %d of them.)", len(names))
	}
	r := tools.Text(text)
	r.Meta = map[string]any{"files": len(names), "truncated": more}
	return r, nil
}

// line keeps a name on one line, and not to be taken for another name.
func line(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == '\\' }
	if !utf8.ValidString(name) || strings.ContainsFunc(name, odd) {
		return strconv.Quote(name)
	}
	return name
}
