package dispatcher_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// A newer dispatcher may say more in a reply, and in the reason of a refusal. A value of another type is still an error.
func TestRepliesOfANewerDispatcher(t *testing.T) {
	y := newYard(t)
	const (
		status  = `{"tenant":"acme","id":"r","status":"running","attempt":2,"updated":"2026-01-02T15:04:05Z"`
		problem = `{"status":400,"code":"invalid_input","title":"Bad Request","detail":"is wrong","field":"id"`
	)
	for name, tt := range map[string]struct {
		reply   string
		refused bool
		want    string // in the error
	}{
		"a field":         {status + `,"mood":{"of":["the",{"crew":null}]},"sequence":7}`, false, ""},
		"a reason":        {problem + `,"mood":"fine"}`, true, "id: is wrong"},
		"another type":    {status + `,"sequence":"seven"}`, false, "sequence: must be an integer, not a string"},
		"no JSON":         {status, false, "read the dispatcher's reply"},
		"a broken extra":  {status + `,"mood":{"of":}}`, false, "mood.of: "},
		"a doubled extra": {status + `,"mood":1,"mood":2}`, false, "mood: given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			sub, err := y.nc.Subscribe(control.SubjectStatus, func(m *nats.Msg) {
				answer := &nats.Msg{Data: []byte(tt.reply), Header: nats.Header{}}
				if tt.refused {
					answer.Header.Set("Nats-Service-Error-Code", "400")
					answer.Header.Set("Nats-Service-Error", "is wrong")
				}
				if err := m.RespondMsg(answer); err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			s, err := y.client.Status(t.Context(), messages.Ref{Tenant: "acme", Run: "r"})
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want == "" && (s.Attempt != 2 || s.Sequence != 7):
				t.Errorf("%+v", s)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %q", err, tt.want)
			}
			if fe, ok := errors.AsType[*messages.FieldError](err); tt.refused && (!ok || fe.Field != "id") {
				t.Errorf("the refusal names no field: %v", err)
			}
			if err := sub.Unsubscribe(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
