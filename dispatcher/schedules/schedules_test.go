package schedules_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher/schedules"
	"github.com/longshore-run/longshore/messages"
)

func TestExampleParses(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../deploy/examples/schedules/morning-report.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := schedules.Parse(data)
	if err != nil || s.Name != "morning-report" || s.TimeZone != "Europe/Berlin" || s.Task.Priority != messages.PriorityLow || s.Description == "" {
		t.Errorf("%+v, %v", s, err)
	}
}

const head = "apiVersion: longshore.run/v1\nkind: Schedule\nmetadata: {name: n}\n"

func TestParseNamesTheField(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ text, field string }{
		"another kind":      {strings.Replace(head, "Schedule", "Agent", 1) + "spec: {every: 1h, task: {input: x}}", "kind"},
		"another version":   {strings.Replace(head, "v1", "v2", 1) + "spec: {every: 1h, task: {input: x}}", "apiVersion"},
		"no spec":           {head, "spec"},
		"a name in spec":    {head + "spec: {name: m, every: 1h, task: {input: x}}", "spec"},
		"a tenant in spec":  {head + "spec: {tenant: t, every: 1h, task: {input: x}}", "spec"},
		"an unknown field":  {head + "spec: {each: 1h, task: {input: x}}", "spec.each"},
		"a hostile name":    {strings.Replace(head, "name: n", `name: "*"`, 1) + "spec: {every: 1h, task: {input: x}}", "metadata.name"},
		"no input":          {head + "spec: {every: 1h, task: {agent: a}}", "spec.task.input"},
		"a number as every": {head + "spec: {every: 10, task: {input: x}}", "spec.every"},
		"a key given twice": {head + "spec: {every: 1h, every: 2h, task: {input: x}}", ""},
		"no YAML":           {"\t:", ""},
		"nothing":           {"# later\n", ""},
		"a long file":       {strings.Repeat("#", 2<<20), ""},
	} {
		_, err := schedules.Parse([]byte(tc.text))
		var field *messages.FieldError
		if err == nil || tc.field != "" && (!errors.As(err, &field) || field.Field != tc.field) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASecondScheduleIsNotDropped(t *testing.T) {
	one := head + "spec: {every: 1h, task: {input: x}}\n"
	_, err := schedules.Parse([]byte(one + "---\n" + one))
	want := fmt.Sprintf("a second YAML document begins on line %d: give one document in each file", strings.Count(one, "\n")+2)
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := schedules.Parse([]byte("---\n" + one + "---\n")); err != nil {
		t.Errorf("separators alone: %v", err)
	}
}
