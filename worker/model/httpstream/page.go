package httpstream

import (
	"bytes"
	"fmt"
	"regexp"
)

var htmlTitle = regexp.MustCompile(`(?is)<title[^>]*>([^<]*)`)

// Trim removes a byte order mark and the white space around an answer.
func Trim(body []byte) []byte { return bytes.TrimSpace(bytes.TrimPrefix(body, []byte(bom))) }

// WebPage describes a trimmed answer that is a web page, as proxies send it, by its title. It returns false for others.
func WebPage(body []byte) (string, bool) {
	if len(body) == 0 || body[0] != '<' {
		return "", false
	}
	if m := htmlTitle.FindSubmatch(body); m != nil && len(bytes.TrimSpace(m[1])) > 0 {
		return fmt.Sprintf("a web page titled %q", bytes.TrimSpace(m[1])), true
	}
	return "a web page", true
}
