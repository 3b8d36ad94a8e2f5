package api_test

import (
	"encoding/json"
	"net/http"
	"testing"
)

// A list of no runs is a list.
func TestNoRunsAreNoNull(t *testing.T) {
	h := open(t)
	var list map[string]json.RawMessage
	h.do("GET", "/v1/tasks", "", http.StatusOK, &list, "Longshore-Tenant", "unknown")
	if got := string(list["runs"]); got != "[]" {
		t.Errorf("%s", got)
	}
}
