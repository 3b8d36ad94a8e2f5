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
	known, failed := s.cfg.Logs.Ended(ctx, ref)
	if !known && failed == nil && s.cfg.Index != nil {
		var begun map[string]bool
		begun, failed = s.cfg.Index.Begun(ctx, ref.Tenant, []string{ref.Run})
		known = begun[ref.Run]
	}
	if failed != nil {
		s.cfg.Log.DebugContext(ctx, "look for a run that was removed", "task_id", ref.Run, "err", failed)
	}
	if !known {
		return err
	}
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusNotFound), Status: http.StatusNotFound,
		Code: messages.CodeNotFound, Detail: control.RunRemoved,
	}
}
