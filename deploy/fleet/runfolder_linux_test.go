package fleet_test

import "testing"

// On a terminal a person is asked before anything is written: yes is the standard answer after a run that completed, no after another.
// Ctrl-C leaves the folder as it was.
func TestRunOnAFolderAsks(t *testing.T) {
	h, dir := openFolder(t)
	for name, tc := range map[string]struct {
		text, question, keys string
		code                 int
		want                 string
	}{
		"an empty line after success": {"fix", "Write 2 changes to ", "\r", 0, fixed},
		"no":                          {"fix", "[Y/n]", "no\r", 0, untouched},
		"an empty line after failure": {"break", "[y/N]", "\r", 1, untouched},
		"Ctrl-C":                      {"fix", "[Y/n]", "\x03", 130, untouched},
	} {
		t.Run(name, func(t *testing.T) {
			fill(t, dir)
			f := foreground(t, h.nats, "run", tc.text, "--workspace", dir)
			f.waitFor(tc.question)
			f.Press(tc.keys)
			if code := f.ends(); code != tc.code {
				t.Errorf("it ends with %d, want %d", code, tc.code)
			}
			if now := contents(t, dir); now != tc.want {
				t.Errorf("the folder has %s, want %s", now, tc.want)
			}
		})
	}
}
