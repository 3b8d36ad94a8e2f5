package cli_test

import "testing"

// A list of nothing says so where it does not disturb who reads the output.
func TestEmptyLists(t *testing.T) {
	f := newFleet(t)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"batches":   {[]string{"batch", "list"}, "no batches of tenant default\n"},
		"keys":      {[]string{"keys", "api", "list"}, "no API keys: make one with `longshore keys api create`\n"},
		"lanes":     {[]string{"lanes", "--tenant", "acme"}, "nothing is queued\n"},
		"pauses":    {[]string{"pause"}, "nothing is paused\n"},
		"prompts":   {[]string{"prompts", "list"}, "no prompts\n"},
		"quotas":    {[]string{"quotas", "list"}, "no quotas: nothing is limited\n"},
		"no limits": {[]string{"quotas", "delete", "tenant", "acme"}, "tenant acme has no limits\n"},
		"schedules": {[]string{"schedules", "list"}, "no schedules of tenant default: store one with `longshore schedules apply`\n"},
		"sessions":  {[]string{"sessions", "list"}, "no sessions of tenant default\n"},
		"workers":   {[]string{"workers"}, "no worker answers: start one with `longshore worker`\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, errs := f.run(t, tc.args...); out != "" || errs != tc.want {
				t.Errorf("got %q and %q, want %q", out, errs, tc.want)
			}
			if _, errs := f.run(t, append(tc.args, "-o", "json")...); errs != "" {
				t.Errorf("as JSON: %q", errs)
			}
		})
	}
}
