package service

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Every operation has a handler, and there is no other handler.
func TestEveryOperationIsAnswered(t *testing.T) {
	var want []string
	for _, o := range control.Operations().OverNATS() {
		want = append(want, o.Subject)
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(New(Config{Controller: &runlog.Controller{}}).owners.handlers())); !slices.Equal(got, want) {
		t.Errorf("answered: %v\noperations: %v", got, want)
	}
}

// A table that does not fit the handlers is an error before anything is served.
func TestOperationsAndHandlersFit(t *testing.T) {
	extra := control.Operation{Subject: "longshore.berths.take", Asks: control.Empty{}, Reply: control.Empty{}}
	do := func(context.Context, []byte) (any, error) { return nil, nil }
	c := &runlog.Controller{}
	for want, cfg := range map[string]Config{
		"longshore.berths.take has no handler":          {Controller: c, Operations: append(control.Operations(), extra)},
		"longshore.submit is in the table twice":        {Controller: c, Operations: append(control.Operations(), *control.Of(control.SubjectSubmit))},
		"the handler of longshore.berths.take has no":   {Controller: c, Handlers: request.Handlers{extra.Subject: do}},
		"the handler of longshore.berths.take has no o": {Controller: c, Operations: control.Table{}, Handlers: request.Handlers{extra.Subject: do}},
	} {
		if err := New(cfg).Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
