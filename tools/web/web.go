// Package web is the family of tools with which a model calls servers over HTTP: http_get reads, and http_request changes
// something. Both reach only what the operator lists and the agent's grants leave, judged for each redirect anew and again at
// the address that is dialled. They keep no cookie, ask no proxy, and never show a credential to the model.
//
// They are two tools because a tool has one effect: reads run in parallel, are made again after a failure and after a
// crash; a change is sent once, with a key, and its outcome may stay unknown.
package web

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/credential"
	"github.com/longshore-run/longshore/tools/outbound"
)

var (
	//go:embed http_get.md
	getDescription string
	//go:embed http_request.md
	requestDescription string
)

// Arguments of the tools.
type (
	getArgs struct {
		URL        string            `json:"url"                  jsonschema:"The full address, such as https://api.example.com/v1/items?page=2"`
		Method     string            `json:"method,omitempty"     jsonschema:"GET (default), or HEAD for the status and headers alone"`
		Headers    map[string]string `json:"headers,omitempty"    jsonschema:"Headers to send, such as Accept. Those of the connection, Authorization and Cookie are refused"`
		Credential string            `json:"credential,omitempty" jsonschema:"Name of a credential that the operator configured; it is added for you"`
		Format     string            `json:"format,omitempty"     jsonschema:"markdown (default): HTML as Markdown, other text as it is. text: text as it was sent. raw: the bytes as base64"`
	}
	requestArgs struct {
		URL        string            `json:"url"                  jsonschema:"The full address, such as https://api.example.com/v1/items"`
		Method     string            `json:"method"               jsonschema:"POST, PUT, PATCH, DELETE or another method that the operator lists"`
		Headers    map[string]string `json:"headers,omitempty"    jsonschema:"Headers to send, such as Content-Type. Those of the connection, Authorization and Cookie are refused"`
		Body       string            `json:"body,omitempty"       jsonschema:"The body. Without a Content-Type header it is sent as application/json when it is JSON, else as text/plain"`
		Credential string            `json:"credential,omitempty" jsonschema:"Name of a credential that the operator configured; it is added for you"`
		Format     string            `json:"format,omitempty"     jsonschema:"markdown (default): HTML as Markdown, other text as it is. text: text as it was sent. raw: the bytes as base64"`
	}
)

// Formats of a body in a result.
const (
	formatMarkdown = "markdown"
	formatText     = "text"
	formatRaw      = "raw"
)

// Tools are http_get and http_request. Errors are *messages.FieldError about the configuration.
func Tools(cfg Config, credentials *credential.Store) ([]tools.Tool, error) {
	return Over(nil, cfg, credentials)
}

// Over is Tools with a transport of the caller's in place of one that dials; nil: Tools. Hosts, methods, credentials and grants are
// judged all the same, addresses that names lead to are not. It is for tests: see package webtest.
func Over(transport http.RoundTripper, cfg Config, credentials *credential.Store) ([]tools.Tool, error) {
	p, err := newPolicy(&cfg)
	if err != nil {
		return nil, err
	}
	b := &browser{policy: p, credentials: credentials, userAgent: cfg.UserAgent, pages: make(chan struct{}, mostPages)}
	if b.client = outbound.New(outbound.Guard(p.hosts, p.private), cfg.MaxBody); transport != nil {
		b.client = outbound.Over(transport, cfg.MaxBody)
	}
	schema, err := choices[getArgs](map[string][]any{"method": {http.MethodGet, http.MethodHead}})
	if err != nil {
		return nil, err
	}
	get, err := tools.Func(messages.ToolSpec{Name: "http_get", Effect: messages.EffectRead, Description: getDescription, InputSchema: schema}, b.get)
	if err != nil {
		return nil, err
	}
	if schema, err = choices[requestArgs](nil); err != nil {
		return nil, err
	}
	request, err := tools.Func(messages.ToolSpec{Name: "http_request", Effect: messages.EffectOnce, Description: requestDescription, InputSchema: schema}, b.request)
	if err != nil {
		return nil, err
	}
	timeout, weight := time.Duration(cfg.Timeout), bodyWeight*cfg.MaxBody+tools.DefaultWeight
	return []tools.Tool{timed{get, timeout, weight}, timed{request, timeout, weight}}, nil
}

// choices is the schema of arguments in which some fields are one of a few words.
func choices[In any](of map[string][]any) (json.RawMessage, error) {
	s, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, fmt.Errorf("infer input schema: %w", err)
	}
	for name, words := range of {
		s.Properties[name].Enum = words
	}
	s.Properties["format"].Enum = []any{formatMarkdown, formatText, formatRaw}
	return json.Marshal(s)
}

// bodyWeight is how many times a body is in memory while the last of it is read: the buffer grows by copying.
const bodyWeight = 2

// timed is a tool with the operator's timeout, whose calls are made again after a transient failure.
type timed struct {
	tools.Tool

	timeout time.Duration
	weight  int64
}

func (t timed) Timeout() time.Duration { return t.timeout }

// Weight implements tools.Weigher: an answer is read as a whole before it is cut.
func (t timed) Weight(*tools.Call) int64 { return t.weight }

func (t timed) Retry() tools.Retry {
	return tools.Retry{Retries: 2, First: 500 * time.Millisecond, Most: 5 * time.Second}
}

var (
	_ tools.Timeouter = timed{}
	_ tools.Retrier   = timed{}
	_ tools.Weigher   = timed{}
)

func (b *browser) get(ctx context.Context, c tools.Call, in getArgs) (tools.Result, error) {
	if in.Method == "" {
		in.Method = http.MethodGet
	}
	return b.answer(ctx, &c, requestArgs{URL: in.URL, Method: in.Method, Headers: in.Headers, Credential: in.Credential, Format: in.Format})
}

func (b *browser) request(ctx context.Context, c tools.Call, in requestArgs) (tools.Result, error) {
	if in.Method != strings.ToUpper(in.Method) {
		return wrong("method", "must be in capitals, such as POST"), nil
	}
	return b.answer(ctx, &c, in)
}

// repeatable reports whether HTTP says of a method that to do it twice is to do it once.
func repeatable(method string) bool {
	return reads(method) || method == http.MethodPut || method == http.MethodDelete
}

// reads reports whether a method asks and changes nothing.
func reads(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method)
}

// wrong is a Result about an argument.
func wrong(field, reason string) tools.Result {
	r := tools.Failure(fmt.Sprintf("Invalid arguments: %q %s.", field, reason))
	r.Code = messages.CodeInvalidInput
	return r
}

// refused is a Result about what the operator or the agent does not grant.
func refused(reason string) tools.Result {
	r := tools.Failure("Refused: " + reason + ".")
	r.Code = messages.CodePolicy
	return r
}
