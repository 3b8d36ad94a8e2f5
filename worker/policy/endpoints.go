package policy

import (
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/longshore-run/longshore/messages/hosts"
)

// maxNested bounds how deep JSON is read that is a text in JSON.
const maxNested = 4

// endpoints are the hosts with ports of the addresses in a text, in JSON, in texts of that, and in JSON that is such a text. It finds
// what programs read as an address that are less strict than Go: https:\\host, https:host.example, one in the middle of a word.
func endpoints(arguments string) []string { return nested(arguments, maxNested) }

func nested(text string, depth int) (all []string) {
	tree, err := parse(text)
	if err != nil {
		return addresses(text)
	}
	walk(tree, func(text string) string {
		all = append(all, addresses(text)...)
		if begin := strings.TrimLeft(text, " \t\r\n"); depth > 0 && begin != "" && (begin[0] == '{' || begin[0] == '[' || begin[0] == '"') {
			all = append(all, nested(text, depth-1)...)
		}
		return text
	})
	return all
}

// scheme begins an address of the web. Browsers read \ as /, and any number of them.
//
//nolint:gochecknoglobals // a constant
var scheme = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)(http|ws|https|wss|ftp):[/\\]*`) })

// addresses are the endpoints in a text that is no JSON.
func addresses(text string) (all []string) {
	if !strings.Contains(text, ":") {
		return nil
	}
	begins := scheme().FindAllStringSubmatchIndex(text, -1)
	whole := strings.TrimFunc(text, func(r rune) bool { return r <= ' ' })
	for i, at := range begins {
		rest, end := text[at[1]:], len(text)
		if i+1 < len(begins) {
			end = begins[i+1][0]
		}
		alone := i == 0 && strings.HasPrefix(whole, text[at[0]:at[1]])
		if endpoint, ok := endpointOf(text[at[2]:at[3]], rest, alone); ok && (text[at[1]-1] != ':' || strings.Contains(text[at[1]:end], ".")) {
			all = append(all, endpoint)
		}
	}
	// An address that is all of a text may hold line breaks, which browsers leave out.
	if one := strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(whole); one != whole && !strings.Contains(one, " ") {
		if at := scheme().FindAllStringIndex(one, 2); len(at) == 1 && at[0][0] == 0 {
			all = append(all, addresses(one)...)
		}
	}
	return all
}

// endpointOf reads the host at the beginning of a text that follows a scheme. Of an address that stands in other text, quotes and
// brackets end it; alone they may be part of a user, which a host follows.
func endpointOf(scheme, rest string, alone bool) (endpoint string, ok bool) {
	const around = "\"'`<>(){}|^,;*"
	authority := func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`/\?#`, r) || !alone && strings.ContainsRune(around, r)
	}
	if end := strings.IndexFunc(rest, authority); end >= 0 {
		rest = rest[:end]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	name, port, _ := strings.Cut(rest, ":")
	if address, after, closed := strings.Cut(rest, "]"); closed && rest[0] == '[' {
		name, port = address[1:], strings.TrimPrefix(after, ":")
	}
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	if name = strings.TrimRight(name, ".!]"); name == "" {
		return "", false
	}
	if port == "" {
		port = map[string]string{"http": "80", "ws": "80", "https": "443", "wss": "443", "ftp": "21"}[strings.ToLower(scheme)]
	}
	return hosts.Join(name, port), true
}
