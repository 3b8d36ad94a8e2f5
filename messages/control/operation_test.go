package control_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/messages/strict"
)

func ExampleOperation_Parts() {
	op := control.Of(control.SubjectSteer)
	parts, err := op.Parts(control.SteerRequest{Tenant: "acme", ID: "run-1", Message: "Use metric units.", Control: "m-1"})
	fmt.Println(op.Method, op.Path, parts.Path["id"], parts.Header[control.HeaderTenant], string(parts.Body), err)
	// Output: POST /v1/tasks/{id}/steer run-1 acme {"id":"m-1","message":"Use metric units."} <nil>
}

// filled gives every field of a request a value that is not its zero one.
func filled(t *testing.T, v reflect.Value, name string) {
	t.Helper()
	switch v.Kind() { //nolint:exhaustive // the kinds that requests have
	case reflect.String:
		v.SetString("x-" + name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64:
		v.SetUint(9)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(t, v.Elem(), name)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				filled(t, v.Field(i), strings.ToLower(f.Name))
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if v.Type().Elem().Kind() == reflect.String {
			v.SetMapIndex(reflect.ValueOf("k").Convert(v.Type().Key()), reflect.ValueOf("v").Convert(v.Type().Elem()))
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"id":"x"}`))
		} else if v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.Append(v, reflect.ValueOf("x-"+name).Convert(v.Type().Elem()), reflect.ValueOf("y").Convert(v.Type().Elem())))
		} else if v.Type() == reflect.TypeFor[[]control.Uploaded]() || v.Type() == reflect.TypeFor[[]memory.Item]() {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			filled(t, v.Index(0), name)
		} else if v.Type() == reflect.TypeFor[[]byte]() {
			v.SetBytes([]byte(name))
		}
	}
}

// What a client makes of a request, the server reads as the same request: of each operation and each of its fields, those
// excepted that do not travel over HTTP.
func TestRequestsTravelOverHTTP(t *testing.T) {
	n := 0
	for _, op := range control.Operations() {
		if op.ID == "" {
			continue
		}
		n++
		request := reflect.New(reflect.TypeOf(op.Asks))
		filled(t, request.Elem(), "x")
		parts, err := op.Parts(request.Interface())
		if err != nil {
			t.Fatalf("%s: %v", op.Subject, err)
		}
		for part := range strings.SplitSeq(op.Path, "/") {
			if name, ok := strings.CutPrefix(part, "{"); ok && parts.Path[strings.TrimSuffix(name, "}")] == "" {
				t.Errorf("%s: the path lacks %s", op.Subject, name)
			}
		}
		fields, err := op.Request(parts)
		if err != nil {
			t.Errorf("%s: %v", op.Subject, err)
			continue
		}
		for field, where := range op.Fields {
			if where != "none" {
				continue
			}
			if fields[field] != nil {
				t.Errorf("%s: %s travels", op.Subject, field)
			}
			var all map[string]json.RawMessage
			sent, _ := json.Marshal(request.Interface())
			if json.Unmarshal(sent, &all) != nil || all[field] == nil {
				t.Errorf("%s: %s is no field of the request", op.Subject, field)
			}
			fields[field] = all[field]
		}
		got, _ := json.Marshal(fields)
		again := reflect.New(reflect.TypeOf(op.Asks))
		if err := strict.Decode(got, again.Interface()); err != nil {
			t.Errorf("%s: %v in %s", op.Subject, err, got)
		}
		want, _ := json.Marshal(request.Interface())
		have, _ := json.Marshal(again.Interface())
		if string(want) != string(have) {
			t.Errorf("%s:\nsent %s\nread %s", op.Subject, want, have)
		}
	}
	if n < 40 {
		t.Errorf("%d operations over HTTP", n)
	}
}

// Operations that change the whole fleet are not available to clients of one tenant, and operations that change something are audited.
func TestOperationsOfTheFleet(t *testing.T) {
	for _, subject := range []string{control.SubjectAgentApply, control.SubjectPromptPut, control.SubjectBatchOpen, control.SubjectQuotaPut, control.SubjectKeyCreate} {
		if control.Of(subject).Tenants {
			t.Errorf("%s is for tenants", subject)
		}
	}
	for _, op := range control.Operations() {
		if op.ID != "" && op.Needs.FleetWide() && op.Tenants {
			t.Errorf("%s is for tenants, and needs a role over all of them", op.Subject)
		}
		if op.Summary == "" {
			t.Errorf("%s says nothing of itself", op.Subject)
		}
	}
}

// The table says what a request about something means that is not there, so that the documents and clients know it.
func TestOperationsSayWhatTheirErrorsMean(t *testing.T) {
	t.Parallel()
	never := map[string]string{
		control.SubjectQuotaGet:     "what was never granted is a quota without limits",
		control.SubjectQuotaDelete:  "so it is nothing that could be missing",
		memory.SubjectList:          "a collection comes to be with its first item: without any it is empty",
		memory.SubjectSearch:        "so nothing is found in it",
		memory.SubjectDelete:        "and nothing is removed",
		control.SubjectFeedbackList: "feedback outlives the run: the list is empty",
	}
	for _, o := range control.Operations() {
		type kind struct {
			status int
			code   messages.Code
		}
		said, missing := map[kind]bool{}, false
		for _, f := range o.Failures {
			k := kind{f.Status, f.Code}
			if said[k] || f.Text == "" || f.Status < 400 || f.Code == "" {
				t.Errorf("%s: the failure %+v is declared twice, or says too little", o.Subject, f)
			}
			said[k] = true
			missing = missing || f.Status == 404
		}
		about := strings.Contains(o.Path, "{") && o.Method != http.MethodPut // which makes what is not there
		if exempt := never[o.Subject] != ""; about && missing == exempt {
			t.Errorf("%s: %s %s declares no 404, or is exempt and does", o.Subject, o.Method, o.Path)
		}
	}
}

// A position is bounded: what is wrong with it is told with it, in an answer that must fit a message.
func TestPositionOfEventsIsBounded(t *testing.T) {
	t.Parallel()
	longest := strings.TrimSuffix(strings.Repeat("9223372036854775807.", 64), ".")
	if err := (&control.EventsRequest{Position: longest}).Check(); err != nil {
		t.Errorf("the longest that there may be: %v", err)
	}
	for _, position := range []string{strings.Repeat("1", 1<<20), strings.Repeat("1.", 1<<20), strings.Repeat("\x00", 2000)} {
		err := (&control.EventsRequest{Position: position}).Check()
		field, ok := errors.AsType[*messages.FieldError](err)
		if !ok || field.Field != "position" || len(field.Reason) > 200 {
			t.Errorf("%d bytes: %.300v", len(position), err)
		}
	}
}
