package messages

import (
	"fmt"
	"maps"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// HookPoint is a place in a run where hooks are called.
type HookPoint string

// Hook points. The first two decide: their answer may be a refusal. The others are told.
const (
	HookPreTask   HookPoint = "pre_task"   // before the first step
	HookPreTool   HookPoint = "pre_tool"   // before a tool call begins
	HookStepStart HookPoint = "step_start" // a step has begun, its model call has not
	HookPostTool  HookPoint = "post_tool"  // a tool call's result is recorded
	HookOnError   HookPoint = "on_error"   // the run is about to fail
	HookPostTask  HookPoint = "post_task"  // the run is about to end
	HookOnTokens  HookPoint = "on_tokens"  // text of a reply that is being written; may be dropped
)

// HookPoints are all of them, in the order in which they are told.
func HookPoints() []HookPoint {
	return []HookPoint{HookPreTask, HookStepStart, HookPreTool, HookPostTool, HookOnError, HookPostTask, HookOnTokens}
}

// Decides reports whether a hook of the point may refuse what comes next.
func (p HookPoint) Decides() bool { return p == HookPreTask || p == HookPreTool }

// Values of Hook.OnFailure.
const (
	HookIgnore = "ignore" // the run continues as if the hook had agreed
	HookFail   = "fail"   // the run fails with code policy
)

// Limits of hooks.
const (
	DefaultHookTimeout = 5 * time.Second
	MaxHookTimeout     = 30 * time.Second
	MaxHooks           = 16 // of an agent
	maxHookURL         = 2 << 10
	maxHookHeaders     = 16
	maxHookHeader      = 1 << 10 // bytes of a header's value
	maxHookReason      = 1 << 10 // bytes of a refusal's reason
)

// Hook is what an agent wants called at a point of its runs: an HTTP call or a command, one of URL and Command. It is part of the
// log: it must hold no secret.
type Hook struct {
	On        HookPoint         `json:"on"`
	URL       string            `json:"url,omitempty"`       // http or https, without a user; its host must be one that the operator listed
	Command   string            `json:"command,omitempty"`   // the name of a command that the operator listed
	Timeout   Duration          `json:"timeout,omitempty"`   // default 5s, at most 30s
	OnFailure string            `json:"onFailure,omitempty"` // "ignore" or "fail"; default fail for pre_task and pre_tool, else ignore
	Headers   map[string]string `json:"headers,omitempty"`   // sent along with an HTTP call; none that carry credentials
}

// Name is the hook in words that may be shown: its URL without query and fragment, or its command.
func (h *Hook) Name() string {
	if h.Command != "" {
		return "command " + strict.Shown(h.Command)
	}
	u, err := url.Parse(h.URL)
	if err != nil {
		return "a hook whose URL cannot be read"
	}
	return shownURL(u)
}

func shownURL(u *url.URL) string {
	return strict.Clip((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), MaxEventName)
}

// OnHookFailure is what a hook of the point does by default when it fails.
func OnHookFailure(p HookPoint) string {
	if p.Decides() {
		return HookFail
	}
	return HookIgnore
}

func (d *Definition) setHookDefaults() {
	d.Hooks = slices.Clone(d.Hooks) // do not modify the caller's
	for i := range d.Hooks {
		h := &d.Hooks[i]
		if h.Timeout == 0 {
			h.Timeout = Duration(DefaultHookTimeout)
		}
		if h.OnFailure == "" {
			h.OnFailure = OnHookFailure(h.On)
		}
	}
}

func (d *Definition) checkHooks() error {
	if len(d.Hooks) > MaxHooks {
		return &FieldError{Field: "hooks", Reason: fmt.Sprintf("more than %d", MaxHooks)}
	}
	for i := range d.Hooks {
		if err := d.Hooks[i].check(fmt.Sprintf("hooks[%d].", i)); err != nil {
			return err
		}
	}
	return nil
}

func (h *Hook) check(at string) error {
	switch {
	case !slices.Contains(HookPoints(), h.On):
		return &FieldError{Field: at + "on", Reason: fmt.Sprintf("%q is not a hook point; known: %s", strict.Shown(string(h.On)), pointNames())}
	case h.Timeout < 0 || time.Duration(h.Timeout) > MaxHookTimeout:
		return &FieldError{Field: at + "timeout", Reason: fmt.Sprintf("must be above 0s and at most %s", MaxHookTimeout)}
	case h.OnFailure != "" && h.OnFailure != HookIgnore && h.OnFailure != HookFail:
		return &FieldError{Field: at + "onFailure", Reason: "must be ignore or fail"}
	case h.On == HookOnTokens && h.OnFailure == HookFail:
		return &FieldError{Field: at + "onFailure", Reason: "must be ignore for on_tokens: the run does not wait for it"}
	}
	if h.Command != "" {
		return h.checkCommand(at)
	}
	if err := checkAddress(at+"url", h.URL); err != nil {
		return err
	}
	return h.checkHeaders(at + "headers")
}

func (h *Hook) checkCommand(at string) error {
	switch {
	case h.URL != "":
		return &FieldError{Field: at + "command", Reason: "must not stand beside url: a hook is one of them"}
	case len(h.Headers) > 0:
		return &FieldError{Field: at + "headers", Reason: "must not stand beside command: a command gets no headers"}
	case h.On == HookOnTokens:
		return &FieldError{Field: at + "command", Reason: "must not be called at on_tokens, which would start a program for each piece of text; use url"}
	case !IsCommandName(h.Command):
		return &FieldError{Field: at + "command", Reason: "must be the name of a command that the operator listed: 1 to 64 lower-case letters, digits, - and _, beginning with a letter"}
	}
	return nil
}

// IsCommandName reports whether a command of the operator's list may be called so.
func IsCommandName(s string) bool {
	const most = 64
	return s != "" && len(s) <= most && s[0] >= 'a' && s[0] <= 'z' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

func (h *Hook) checkHeaders(at string) error {
	if len(h.Headers) > maxHookHeaders {
		return &FieldError{Field: at, Reason: fmt.Sprintf("more than %d", maxHookHeaders)}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		field := at + "." + strict.Shown(name)
		switch canonical := textproto.CanonicalMIMEHeaderKey(name); {
		case !isHeaderName(name):
			return &FieldError{Field: field, Reason: "is not the name of a header"}
		case slices.Contains(ownHeaders(), canonical) || strings.HasPrefix(canonical, "Longshore-"):
			return &FieldError{Field: field, Reason: "is set by the worker"}
		case carriesSecret(canonical):
			return &FieldError{Field: field, Reason: "carries credentials, which must not be stored with a run; hooks are signed with LONGSHORE_HOOK_SECRET instead"}
		}
		value := h.Headers[name]
		if err := strict.CheckText(field, value, maxHookHeader); err != nil {
			return err
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return &FieldError{Field: field, Reason: "holds a control character"}
		}
	}
	return nil
}

// ownHeaders are those that no hook may set.
func ownHeaders() []string {
	return []string{
		"Host", "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Expect",
		"Keep-Alive", "User-Agent",
	}
}

func carriesSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"authorization", "cookie", "token", "secret", "api-key", "apikey", "password"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

func isHeaderName(s string) bool {
	if s == "" || len(s) > strict.MaxShown {
		return false
	}
	for _, c := range []byte(s) {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

func pointNames() string {
	var names []string
	for _, p := range HookPoints() {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}

// HookCall is what a hook is told: the body of an HTTP hook and the standard input of a command, as JSON, and the argument of a
// Go hook. Which of the last
// fields are set depends on the point.
type HookCall struct {
	ID      string       `json:"id"` // the same for the same happening, over attempts and repetitions
	On      HookPoint    `json:"on"`
	Time    time.Time    `json:"time"`
	Tenant  string       `json:"tenant"`
	Run     string       `json:"run"`
	Agent   string       `json:"agent"`
	Step    int          `json:"step,omitempty"`
	Attempt int          `json:"attempt"`
	Input   string       `json:"input,omitempty"`  // pre_task: what the task asks for
	Tool    *ToolCall    `json:"tool,omitempty"`   // pre_tool, post_tool
	Output  string       `json:"output,omitempty"` // post_tool: what the model is told, shortened
	IsError bool         `json:"isError,omitempty"`
	Code    Code         `json:"code,omitempty"`    // post_tool: of a failure
	Error   *RunError    `json:"error,omitempty"`   // on_error
	Result  *AgentResult `json:"result,omitempty"`  // post_task, shortened
	Kind    LiveKind     `json:"kind,omitempty"`    // on_tokens: text or reasoning; reset: the reply begins anew
	Text    string       `json:"text,omitempty"`    // on_tokens
	Dropped int          `json:"dropped,omitempty"` // on_tokens: bytes that were lost before this text
}

// Ref is the run that the call is about.
func (c *HookCall) Ref() Ref { return Ref{c.Tenant, c.Run} }

// Values of HookAnswer.Decision.
const (
	HookAllow = "allow"
	HookDeny  = "deny"
)

// HookAnswer is what a hook that decides answers. The zero value allows.
type HookAnswer struct {
	Decision string `json:"decision,omitempty"` // "allow" (default) or "deny"
	Reason   string `json:"reason,omitempty"`   // of a refusal
}

// Denies reports whether it is a refusal.
func (a HookAnswer) Denies() bool { return a.Decision == HookDeny }

// Refusal is the refusal in a sentence for the model or the run's error.
func (a HookAnswer) Refusal() string {
	if a.Reason == "" {
		return "Refused by a hook."
	}
	return "Refused by a hook: " + strict.Clip(strings.ToValidUTF8(a.Reason, "\uFFFD"), maxHookReason)
}

// Validate returns a *FieldError when the answer is none.
func (a HookAnswer) Validate() error {
	switch a.Decision {
	case "", HookAllow, HookDeny:
		return nil
	default:
		return &FieldError{Field: "decision", Reason: "must be allow or deny"}
	}
}

// ShownOutput is a tool's output as a hook is told it.
func ShownOutput(r *ToolResult) string { return strict.Clip(r.Shown(), MaxPayload) }

// Short is the copy of a result that hooks are told and events show.
func (r AgentResult) Short(run Ref) AgentResult {
	r.Shorten(run)
	return r
}
