package scripted

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/model"
)

// Bounds of a script.
const (
	MaxScript    = 1 << 20 // bytes
	maxWait      = time.Hour
	defaultChunk = 32 // bytes of a streamed piece: a few words
)

type scriptFile struct {
	Model  string      `json:"model"`
	Scenes []sceneFile `json:"scenes"`
}

type sceneFile struct {
	Match  string     `json:"match"`
	Tools  []string   `json:"tools"`
	Format string     `json:"format"`
	Repeat bool       `json:"repeat"`
	Turns  []turnFile `json:"turns"`
}

type turnFile struct {
	Text     *string    `json:"text"`
	Calls    []callFile `json:"calls"`
	Stop     string     `json:"stop"`
	Usage    *usageFile `json:"usage"`
	Chunk    int        `json:"chunk"`
	Delay    string     `json:"delay"`
	Pause    string     `json:"pause"`
	Error    *errorFile `json:"error"`
	Truncate bool       `json:"truncate"`
}

type callFile struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type usageFile struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Reasoning  int64 `json:"reasoning"`
}

type errorFile struct {
	Class      string `json:"class"`
	Message    string `json:"message"`
	Status     int    `json:"status"`
	RetryAfter string `json:"retryAfter"`
}

// Parse reads a script of at most 1 MiB, strictly. Errors name the line; what is wrong with a field is a *messages.FieldError with its
// path, such as "scenes[1].turns[0].delay".
func Parse(data []byte) (*Script, error) {
	if len(data) > MaxScript {
		return nil, &messages.FieldError{Field: "script", Reason: fmt.Sprintf("larger than %d bytes", MaxScript)}
	}
	doc, err := document.Only(data, MaxScript)
	if err != nil {
		return nil, fmt.Errorf("parse script: %w", err)
	}
	s, err := parse(doc.JSON)
	return s, doc.Locate(err)
}

func parse(asJSON []byte) (*Script, error) {
	var f scriptFile
	if err := strict.Decode(asJSON, &f); err != nil {
		return nil, err
	}
	if len(f.Scenes) == 0 {
		return nil, &messages.FieldError{Field: "scenes", Reason: "needs at least one scene"}
	}
	s := &Script{model: f.Model}
	if s.model == "" {
		s.model = family
	}
	for i := range f.Scenes {
		at := fmt.Sprintf("scenes[%d]", i)
		if n := i - 1; n >= 0 && f.Scenes[n].Match == "" && len(f.Scenes[n].Tools) == 0 && f.Scenes[n].Format == "" {
			return nil, &messages.FieldError{Field: at, Reason: "never plays: the scene before it takes every message"}
		}
		sc, err := readScene(at, &f.Scenes[i])
		if err != nil {
			return nil, err
		}
		s.scenes = append(s.scenes, sc)
	}
	return s, nil
}

func readScene(at string, f *sceneFile) (scene, error) {
	if len(f.Turns) == 0 {
		return scene{}, &messages.FieldError{Field: at + ".turns", Reason: "needs at least one turn"}
	}
	s := scene{match: f.Match, tools: f.Tools, format: f.Format, repeat: f.Repeat}
	for i := range f.Turns {
		t, err := readTurn(fmt.Sprintf("%s.turns[%d]", at, i), &f.Turns[i])
		if err != nil {
			return scene{}, err
		}
		s.turns = append(s.turns, t)
	}
	return s, nil
}

func readTurn(at string, f *turnFile) (t turn, err error) {
	if f.Text == nil && len(f.Calls) == 0 && f.Error == nil && !f.Truncate {
		return turn{}, &messages.FieldError{Field: at, Reason: "needs text, calls, error or truncate"}
	}
	if f.Text != nil {
		t.text = *f.Text
	}
	if t.chunk = f.Chunk; t.chunk == 0 {
		t.chunk = defaultChunk
	}
	if t.chunk < 0 {
		return turn{}, &messages.FieldError{Field: at + ".chunk", Reason: "must be at least 1"}
	}
	if t.delay, err = readWait(at+".delay", f.Delay); err != nil {
		return turn{}, err
	}
	if t.pause, err = readWait(at+".pause", f.Pause); err != nil {
		return turn{}, err
	}
	if t.stop, err = readStop(at+".stop", f.Stop); err != nil {
		return turn{}, err
	}
	if t.usage, err = readUsage(at+".usage", f.Usage); err != nil {
		return turn{}, err
	}
	if t.failure, err = readFailure(at, f); err != nil {
		return turn{}, err
	}
	for i := range f.Calls {
		c, err := readCall(fmt.Sprintf("%s.calls[%d]", at, i), &f.Calls[i])
		if err != nil {
			return turn{}, err
		}
		t.calls = append(t.calls, c)
		t.hasPlaceholders = t.hasPlaceholders || strings.Contains(fmt.Sprint(c.arguments), "${")
	}
	t.hasPlaceholders = t.hasPlaceholders || strings.Contains(t.text, "${")
	return t, nil
}

func readWait(at, s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, &messages.FieldError{Field: at, Reason: fmt.Sprintf("%q is not a duration such as 200ms or 2s", s)}
	}
	if d < 0 || d > maxWait {
		return 0, &messages.FieldError{Field: at, Reason: fmt.Sprintf("must be 0 to %s", maxWait)}
	}
	return d, nil
}

func readStop(at, s string) (messages.StopReason, error) {
	known := []messages.StopReason{
		"", messages.StopEnd, messages.StopToolCalls, messages.StopLength, messages.StopContentFilter,
		messages.StopRefusal, messages.StopError,
	}
	if stop := messages.StopReason(s); slices.Contains(known, stop) {
		return stop, nil
	}
	return "", &messages.FieldError{Field: at, Reason: fmt.Sprintf("%q is not one of %v", s, known[1:])}
}

func readUsage(at string, f *usageFile) (*messages.Usage, error) {
	if f == nil {
		return nil, nil
	}
	if min(f.Input, f.Output, f.CacheRead, f.CacheWrite, f.Reasoning) < 0 {
		return nil, &messages.FieldError{Field: at, Reason: "a count must not be negative"}
	}
	return &messages.Usage{
		Input: f.Input, Output: f.Output, CacheRead: f.CacheRead, CacheWrite: f.CacheWrite,
		Reasoning: f.Reasoning, Total: f.Input + f.Output,
	}, nil
}

func readFailure(at string, f *turnFile) (*model.Error, error) {
	if f.Error != nil && f.Truncate {
		return nil, &messages.FieldError{Field: at, Reason: "has both error and truncate"}
	}
	if (f.Error != nil || f.Truncate) && len(f.Calls) > 0 {
		return nil, &messages.FieldError{Field: at + ".calls", Reason: "a turn that fails makes no calls"}
	}
	if f.Truncate {
		return &model.Error{Class: model.Truncated, Detail: "the script cuts the stream here"}, nil
	}
	if f.Error == nil {
		return nil, nil
	}
	class := model.Class(f.Error.Class)
	if !slices.Contains(model.Classes(), class) {
		return nil, &messages.FieldError{
			Field: at + ".error.class", Reason: fmt.Sprintf("%q is not one of %v", class, model.Classes()),
		}
	}
	after, err := readWait(at+".error.retryAfter", f.Error.RetryAfter)
	if err != nil {
		return nil, err
	}
	return &model.Error{Class: class, Status: f.Error.Status, Detail: f.Error.Message, RetryAfter: after}, nil
}
