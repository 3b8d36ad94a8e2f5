package sandbox_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The list of attacks on sandbox and tools that every release withstands has this many, numbered from 1. The page docs/sandbox.md says where they are
// tried.
const attacks = 134

// Attacks that no test tries, and why. There are none.
var untried = map[int]string{}

// runsAProgram reports whether an attack is one of a program, which is confined in one of two modes. The others are on code of the worker,
// which has no modes: what reads paths, hosts and arguments.
func runsAProgram(attack int) bool {
	return attack == 22 || attack >= 32 && attack <= 79 || attack == 131 || attack == 132
}

// triedInBothModes reports whether a file is of a package whose tests run in both modes. Those of sandbox/process count what ran: see its tally.
func triedInBothModes(file string) bool {
	return strings.HasPrefix(file, "sandbox/process/") || strings.HasPrefix(file, "tools/code/")
}

// Each attack of the list is tried by a test that bears its number: in its name (TestAttack24PipeSwappedIn), in that of a case
// ("47 SIGTERM ignored"), or in the first words of its comment (Attacks 97 and 99: …).
func TestEveryAttackIsTried(t *testing.T) {
	t.Chdir("..")
	files, err := exec.CommandContext(t.Context(), "git", "ls-files", "sandbox/*_test.go", "tools/*_test.go", "deploy/fleet/policycases_linux_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	tried := map[int][]string{}
	for name := range strings.FieldsSeq(string(files)) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range attacksIn(string(text)) {
			if files := tried[n]; !slices.Contains(files, name) {
				tried[n] = append(files, name)
			}
		}
	}
	programs := 0
	for n := 1; n <= attacks; n++ {
		files, mode := tried[n], "no program"
		if runsAProgram(n) {
			programs, mode = programs+1, "namespaces and landlock"
			if !slices.ContainsFunc(files, triedInBothModes) {
				t.Errorf("attack %d is one of a program, but %q do not try it in both modes", n, files)
			}
		}
		t.Logf("%3d  %-23s  %s", n, mode, strings.Join(files, " "))
		switch why, left := untried[n]; {
		case len(files) == 0 && !left:
			t.Errorf("attack %d is tried by no test", n)
		case len(files) > 0 && left:
			t.Errorf("attack %d is said to be untried (%s), but %q try it", n, why, files)
		}
	}
	t.Logf("%d attacks: %d of programs, in both modes; %d of the worker's own code, which has none; %d untried", attacks, programs, attacks-programs, len(untried))
}

var (
	attackTests    = regexp.MustCompile(`(?m)^func TestAttacks?(\d+(?:(?:To|And)\d+)*)`)
	attackComments = regexp.MustCompile(`(?m)^\t*// Attacks? (\d[\d, toand]*):`)
	attackCases    = regexp.MustCompile(`(?m)^\s*(?:\{|name: +|t\.Run\()?"(\d{2,3}(?: to \d+)?) [^"]+"[,:]`)
	attackRange    = regexp.MustCompile(`(\d+)(?:(?: to |To)(\d+))?`)
)

// attacksIn are the numbers that a file of tests bears.
func attacksIn(text string) (out []int) {
	add := func(first, last string) {
		from, err := strconv.Atoi(first)
		to := from
		if last != "" && err == nil {
			to, err = strconv.Atoi(last)
		}
		for n := from; err == nil && n <= min(to, attacks); n++ {
			out = append(out, n)
		}
	}
	for _, pattern := range []*regexp.Regexp{attackTests, attackComments, attackCases} {
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			for _, r := range attackRange.FindAllStringSubmatch(m[1], -1) {
				add(r[1], r[2])
			}
		}
	}
	return out
}

func TestNumbersOfAttacks(t *testing.T) {
	text := "func TestAttacks11To13Links(t *testing.T) {\nfunc TestAttacks4And6(t\n// Attacks 86 to 88 and 101: hosts\n\t\t{\"47 SIGTERM\", x},\n\t{\"59 to 61 reach\",\n\t\"09 a\": 1,\n\t\tname:  \"124 x\",\n\tt.Run(\"8 x\", f)\n\tt.Run(\"18 x\", f)\n// Attack 5 is\n"
	got := attacksIn(text)
	slices.Sort(got)
	if want := []int{4, 6, 9, 11, 12, 13, 18, 47, 59, 60, 61, 86, 87, 88, 101, 124}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
