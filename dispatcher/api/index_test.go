package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages/control"
)

// A caller who may read the fleet sees how far the index is; a caller of one tenant does not.
func TestIndexStatus(t *testing.T) {
	g := openGuarded(t)
	g.do("POST", "/v1/tasks?wait=30s", `{"id":"r","input":"hi"}`, http.StatusOK, nil, g.key("acme", control.RoleSubmitter)...)
	g.do("GET", "/v1/index", "", http.StatusForbidden, nil, g.key("acme", control.RoleAdmin)...)
	header := g.key(control.AllTenants, control.RoleViewer)
	var s control.IndexStatus
	for deadline := time.Now().Add(30 * time.Second); s.Runs == 0 || s.Behind > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", s)
		}
		g.do("GET", "/v1/index", "", http.StatusOK, &s, header...)
	}
	if s.Kind != "sqlite" || !s.Leads || s.Runs != 1 || s.Position == 0 || s.Position > s.Last {
		t.Errorf("%+v", s)
	}
}
