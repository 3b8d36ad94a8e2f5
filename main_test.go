package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestHelpNamesEveryCommandBelowAHeading(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, &out, &errs); code != exitOK || errs.Len() > 0 {
		t.Fatalf("code %d, stderr %q", code, errs.String())
	}
	grouped, rest, found := strings.Cut(out.String(), "Additional Commands:")
	if !found {
		t.Fatalf("help without groups:\n%s", out.String())
	}
	rest, _, _ = strings.Cut(rest, "\n\n")
	for line := range strings.Lines(strings.TrimSpace(rest)) {
		if name := strings.Fields(line)[0]; name != "completion" && name != "help" {
			t.Errorf("%s is in no group", name)
		}
	}
	for _, heading := range []string{"Start a fleet", "Submit tasks", "Decide for", "Look back", "What a fleet keeps"} {
		if !strings.Contains(grouped, heading) {
			t.Errorf("no heading %q", heading)
		}
	}
}
