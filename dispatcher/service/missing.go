package service

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// missing is the answer to a request that names a run which has neither a log nor a task: the error, or, if the events or the
// index still know the run, that it was removed.
func (s *Service) missing(ctx context.Context, body []byte, err error) error {
	var req control.RunRequest
	if json.Unmarshal(body, &req) != nil { // the request was read before; only its run matters here
		return err
	}
	ref, bad := req.Ref()
	if bad != nil {
		return err
	}
	if !s.cfg.removed(ctx, ref) {
		return err
	}
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusNotFound), Status: http.StatusNotFound,
		Code: messages.CodeNotFound, Detail: control.RunRemoved,
	}
}

// removed reports whether the events or the index still know a run that has neither a log nor a task.
func (c *Config) removed(ctx context.Context, ref messages.Ref) bool {
	known, err := c.Logs.Ended(ctx, ref)
	if !known && err == nil && c.Index != nil {
		var begun map[string]bool
		begun, err = c.Index.Begun(ctx, ref.Tenant, []string{ref.Run})
		known = begun[ref.Run]
	}
	if err != nil {
		c.Log.DebugContext(ctx, "look for a run that was removed", "task_id", ref.Run, "err", err)
	}
	return known
}
