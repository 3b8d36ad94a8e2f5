package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
)

// Limits of the headers that a call sends.
const (
	maxHeaders     = 64
	maxHeaderValue = 8 << 10
)

// reserved reports whether a header, in its canonical form, is not the model's to set: it belongs to the connection, it proves
// who is asking, or the tool sets it.
func reserved(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Host", "Content-Length", "Expect", "Http2-Settings",
		"Authorization", "Cookie", "Cookie2", "Accept-Encoding", "User-Agent", "Idempotency-Key", "X-Idempotency-Key":
		return true
	default:
		return strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, ":")
	}
}

// parseHeaders checks the headers of a call. The error is fit for a model.
func parseHeaders(in map[string]string) (http.Header, error) {
	if len(in) > maxHeaders {
		return nil, fmt.Errorf("holds more than %d headers", maxHeaders)
	}
	out := make(http.Header, len(in))
	for _, given := range slices.Sorted(maps.Keys(in)) {
		name, value := http.CanonicalHeaderKey(given), in[given]
		switch {
		case given == "" || strings.ContainsFunc(given, func(r rune) bool { return unprintable(r) || strings.ContainsRune(` "(),/:;<=>?@[\]{}`, r) }):
			return nil, fmt.Errorf("holds %q, which is not the name of a header", strict.Clip(given, 64))
		case reserved(name):
			return nil, fmt.Errorf("must not hold %s%s", name, hint(name))
		case out[name] != nil:
			return nil, fmt.Errorf("holds %s twice", name)
		case len(value) > maxHeaderValue || strings.ContainsFunc(value, func(r rune) bool { return unprintable(r) && r != '\t' }):
			return nil, fmt.Errorf("holds a value of %s that is longer than %d bytes or not printable ASCII", name, maxHeaderValue)
		}
		out[name] = []string{value}
	}
	return out, nil
}

func hint(name string) string {
	switch name {
	case "Authorization", "Cookie":
		return ": name a credential instead"
	default:
		return ": the tool sets it where it is needed"
	}
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }

// portable are the headers that another host gets too: they say nothing about who is asking.
func portable(h http.Header) http.Header {
	out := http.Header{}
	for _, name := range []string{"Accept", "Accept-Language", "Content-Type", "Content-Language"} {
		if v := h[name]; v != nil {
			out[name] = v
		}
	}
	return out
}

// typeOf is what a body is sent as when the call does not say.
func typeOf(body string) string {
	if json.Valid([]byte(body)) {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}
