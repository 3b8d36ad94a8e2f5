package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// fault is what a provider says about an error, in whichever form.
type fault struct {
	message   string
	kind      string // the error's type, such as overloaded_error
	requestID string
	html      bool
}

// maxFaultDepth bounds how deep errors in errors are read.
const maxFaultDepth = 4

// parseFault never fails: what has no known form is its own message.
func parseFault(body []byte) fault {
	body = httpstream.Trim(body)
	if page, ok := httpstream.WebPage(body); ok {
		return fault{message: page, html: true}
	}
	if !json.Valid(body) {
		return fault{message: string(body)}
	}
	return faultOf(body, 0)
}

// faultOf reads the API's own form, {"type":"error","error":{"type","message"}}, and those of gateways before it.
func faultOf(data json.RawMessage, depth int) fault {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return fault{message: text}
	}
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil && len(list) > 0 && depth < maxFaultDepth {
		return faultOf(list[0], depth+1)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) != nil || depth >= maxFaultDepth {
		return fault{}
	}
	var f fault
	for _, key := range []string{"error", "message", "detail", "msg", "errors"} {
		if sub := faultOf(object[key], depth+1); f.message == "" {
			f.message, f.kind, f.requestID = sub.message, first(f.kind, sub.kind), first(f.requestID, sub.requestID)
		}
	}
	_ = json.Unmarshal(object["request_id"], &f.requestID) // not a string: not an id
	var kind string
	if json.Unmarshal(object["type"], &kind) == nil && kind != "error" {
		f.kind = first(f.kind, kind)
	}
	f.kind = strings.TrimSpace(f.kind)
	return f
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
