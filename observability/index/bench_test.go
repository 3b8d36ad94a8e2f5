//go:build unix

package index_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// Lists are read along an index, in their order, and not sorted.
func TestListsUseAnIndex(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	x := h.open(filepath.Join(t.TempDir(), "index.db"))
	if err := x.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	since := noon
	for name, tc := range map[string]struct {
		req  control.RunsRequest
		few  bool
		want string
	}{
		"newest":         {control.RunsRequest{Since: &since}, false, "longshore_runs_first"},
		"of a status":    {control.RunsRequest{Since: &since, Statuses: []messages.Status{messages.StatusFailed}}, false, "longshore_runs_status"},
		"of an agent":    {control.RunsRequest{Agent: "a"}, false, "longshore_runs_agent"},
		"of a session":   {control.RunsRequest{Session: "s"}, false, "longshore_runs_session"},
		"few since then": {control.RunsRequest{Since: &since}, true, "longshore_runs_updated"},
	} {
		tc.req.Tenant, tc.req.Limit = "acme", 100
		plan, err := x.Explain(t.Context(), tc.req, tc.few)
		if err != nil || !strings.Contains(plan, "USING INDEX "+tc.want) || !tc.few && strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s: %s, %v", name, plan, err)
		}
	}
}
