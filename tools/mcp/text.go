package mcp

import (
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
)

// line is a text of a server on one line.
func line(s string, most int) string {
	return strict.Clip(strings.Join(strings.Fields(tools.Plain(s)), " "), most)
}
