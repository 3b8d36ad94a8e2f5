package anthropic

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// maxName is the longest name or id that every server takes.
const maxName = 64

// names maps the names that the API is given to the real names of tools, where they differ.
type names map[string]string

func namesOf(tools []messages.ToolSpec) names {
	n := names{}
	for i := range tools {
		if wire := plain(tools[i].Name); wire != tools[i].Name {
			n[wire] = tools[i].Name
		}
	}
	return n
}

func (n names) real(wire string) string {
	if name, ok := n[wire]; ok {
		return name
	}
	return wire
}

// toolID is an id of a call that the API takes: other providers' ids hold dots, colons and spaces.
func toolID(id string) string { return plain(id) }

// plain returns s when it is made of letters, digits, - and _ alone and no longer than maxName. Otherwise what does not
// fit is replaced and a hash of s added: always the same for s, and another one for another text.
func plain(s string) string {
	if s != "" && len(s) <= maxName && !strings.ContainsFunc(s, strange) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	hash := hex.EncodeToString(sum[:8])
	stem := strings.Map(func(r rune) rune {
		if strange(r) {
			return '_'
		}
		return r
	}, s)
	return stem[:min(len(stem), maxName-len(hash)-1)] + "_" + hash
}

func strange(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
}
