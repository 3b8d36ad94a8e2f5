package cli_test

import (
	"strings"
	"testing"
)

func TestLanes(t *testing.T) {
	f := newFleet(t)
	if out, errs := f.run(t, "lanes", "--tenant", "acme"); out != "" || errs != "nothing is queued\n" {
		t.Errorf("without any: %q, %q", out, errs)
	}
	out, _ := f.run(t, "lanes", "--all", "-o", "json")
	if !strings.Contains(out, `"priority":"wake"`) || strings.Contains(out, `"tenant"`) {
		t.Errorf("all: %s", out)
	}
	for _, args := range [][]string{{"lanes", "--tenant", "a.>"}, {"lanes", "x"}} {
		if _, _, err := executeWith(t, f.connect, "", args...); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
