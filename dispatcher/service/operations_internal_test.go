package service

import (
	"maps"
	"slices"
	"testing"

	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Every operation has a handler, and there is no handler beside them.
func TestEveryOperationIsAnswered(t *testing.T) {
	var want []string
	for _, o := range control.Operations() {
		want = append(want, o.Subject)
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(New(Config{Controller: &runlog.Controller{}}).handlers())); !slices.Equal(got, want) {
		t.Errorf("answered: %v\noperations: %v", got, want)
	}
}
