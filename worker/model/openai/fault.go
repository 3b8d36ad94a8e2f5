package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// fault is what a provider says about an error, in whichever form.
type fault struct {
	message string
	code    string // machine-readable words, joined
	status  int    // an HTTP status given in the body; 0 without one
	html    bool
}

func (f *fault) Error() string { return f.message }

// maxFaultDepth bounds how deep errors in errors are read.
const maxFaultDepth = 5

// parseFault never fails: what has no known form is its own message.
func parseFault(body []byte) fault {
	body = httpstream.Trim(body)
	if page, ok := httpstream.WebPage(body); ok {
		return fault{message: page, html: true}
	}
	if len(body) > httpstream.MaxErrorBody { // no error is as long, and what is made of it takes many times as much
		return fault{message: string(body[:httpstream.MaxDetail])}
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return fault{message: string(body)}
	}
	return faultOf(v, 0)
}

func faultOf(v any, depth int) fault {
	if depth > maxFaultDepth {
		return fault{}
	}
	switch v := v.(type) {
	case string:
		return fault{message: v}
	case []any:
		return faultOfList(v, depth)
	case map[string]any:
		return faultOfObject(v, depth)
	default:
		return fault{}
	}
}

// faultOfList joins what the first few items say.
func faultOfList(list []any, depth int) fault {
	var f fault
	var all []string
	for _, item := range list[:min(len(list), 5)] {
		sub := faultOf(item, depth+1)
		if f.fill(&sub); sub.message != "" {
			all = append(all, sub.message)
		}
	}
	f.message = strings.Join(all, "; ")
	return f
}

func faultOfObject(o map[string]any, depth int) fault {
	var f fault
	for _, key := range []string{"error", "message", "detail", "msg", "errors", "error_description", "title"} {
		if sub := faultOf(o[key], depth+1); sub != (fault{}) {
			f.fill(&sub)
		}
	}
	if loc, ok := o["loc"].([]any); ok && f.message != "" { // FastAPI names the field so
		f.message = fmt.Sprintf("%.200s: %s", fmt.Sprint(loc), f.message)
	}
	var words []string
	for _, key := range []string{"code", "type", "status", "error_type"} {
		switch v := o[key].(type) {
		case string:
			words = append(words, v)
		case float64:
			if v >= 400 && v < 600 && f.status == 0 {
				f.status = int(v)
			}
		}
	}
	f.code = strings.TrimSpace(strings.Join(words, " ") + " " + f.code)
	if meta, ok := o["metadata"].(map[string]any); ok && depth < maxFaultDepth { // a gateway's: what its provider said
		if raw, ok := meta["raw"].(string); ok && raw != "" {
			f.message += ": " + raw
		}
	}
	if choices, ok := o["choices"].([]any); ok && f.message == "" {
		sub := faultOfList(choices, depth+1)
		f.fill(&sub)
	}
	if f.message == "" && depth == 0 && f.code == "" {
		f.message = "an object with " + strings.Join(slices.Sorted(maps.Keys(o)), ", ")
	}
	return f
}

// fill takes from another fault what f lacks.
func (f *fault) fill(o *fault) {
	if f.message == "" {
		f.message = o.message
	}
	if f.status == 0 {
		f.status = o.status
	}
	f.code = strings.TrimSpace(f.code + " " + o.code)
	f.html = f.html || o.html
}
