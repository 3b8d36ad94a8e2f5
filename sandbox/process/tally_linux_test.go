//go:build amd64 || arm64

package process_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// tally is which attack ran in which mode, as whom: a test's name says that it exists, not that it ran.
var tally = struct {
	sync.Mutex
	ran     map[attempt][]string // as whom
	leftOut map[attempt]string   // why, where it never ran
}{ran: map[attempt][]string{}, leftOut: map[attempt]string{}}

type attempt struct {
	attack int
	mode   string
}

// Those that programs are tried with: 32 to 79, and 22, of which a part is.
func attacksOnPrograms() []int {
	out := []int{22}
	for n := 32; n <= 79; n++ {
		out = append(out, n)
	}
	return out
}

// attacksOf are the attacks of tests that have no number in their names.
func attacksOf(test string) []int {
	return map[string][]int{
		"TestWorkspaceIsReplaced": {22}, "TestWorkerIsHidden": {36}, "TestKilledWorker": {56}, "TestManyAtOnce": {58}, "TestAttack73Unavailable": {73},
	}[test]
}

var attackName = regexp.MustCompile(`^(\d+)(?:[ _]to[ _](\d+))?[ _]`)

// counted notes the end of a test in the tally, which its name belongs to: TestAttacks/landlock/43_fork_bomb, or TestManyAtOnce/landlock.
// Without a mode in the name it is the mode of the process, or both if the test is about neither.
func counted(name, as string, passed bool, leftOut string) {
	countedIn(os.Getenv(modeVariable), name, as, passed, leftOut)
}

func countedIn(mode, name, as string, passed bool, leftOut string) {
	words := strings.Split(name, "/")
	attacks := attacksOf(words[0])
	for _, word := range words[1:] {
		if word == "namespaces" || word == "landlock" {
			mode = word
		}
		if m := attackName.FindStringSubmatch(word); m != nil && words[0] == "TestAttacks" {
			first, _ := strconv.Atoi(m[1])
			last, _ := strconv.Atoi(m[2])
			for n := first; n <= max(first, last); n++ {
				attacks = append(attacks, n)
			}
		}
	}
	modes := []string{mode}
	if mode != "namespaces" && mode != "landlock" {
		modes = []string{"namespaces", "landlock"}
	}
	tally.Lock()
	defer tally.Unlock()
	for _, n := range attacks {
		for _, mode := range modes {
			switch a := (attempt{n, mode}); {
			case passed && !slices.Contains(tally.ran[a], as):
				tally.ran[a] = append(tally.ran[a], as)
			case leftOut != "":
				tally.leftOut[a] = leftOut
			}
		}
	}
}

// counts notes the end of this test.
func counts(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		left := ""
		if t.Skipped() {
			left = "skipped as " + me()
		}
		counted(t.Name(), me(), !t.Failed() && !t.Skipped(), left)
	})
}

func me() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return "an unprivileged user"
}

// tallied says which attacks ran in each mode, and which did not, by number. It reports whether each ran in both modes or says why not; of
// a part of the tests it reports true.
func tallied() bool {
	if flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.list").Value.String() != "" || os.Getenv(modeVariable) != "" {
		return true
	}
	complete := true
	for _, mode := range []string{"namespaces", "landlock"} {
		ran, whom := 0, map[string]int{}
		var left []string
		for _, n := range attacksOnPrograms() {
			a := attempt{n, mode}
			switch as, why := tally.ran[a], tally.leftOut[a]; {
			case len(as) > 0:
				ran++
				for _, who := range as {
					whom[who]++
				}
			case why != "":
				left = append(left, fmt.Sprintf("%d (%s)", n, why))
			default:
				complete = false
				fmt.Printf("FAIL: attack %d did not run in the mode %s\n", n, mode)
			}
		}
		fmt.Printf("attacks on programs in the mode %s: %d of %d ran", mode, ran, len(attacksOnPrograms()))
		for _, who := range slices.Sorted(maps.Keys(whom)) {
			fmt.Printf("; as %s %d", who, whom[who])
		}
		if len(left) > 0 {
			fmt.Printf("; left out %d: %s", len(left), strings.Join(left, ", "))
		}
		fmt.Println()
	}
	return complete
}

func TestNamesInTheTally(t *testing.T) {
	const who = "a test of the tally"
	for name, want := range map[string][]attempt{
		"TestAttacks/landlock/43_fork_bomb":                         {{43, "landlock"}},
		"TestAttacks/namespaces/59_to_61_reach_for_the_worker":      {{59, "namespaces"}, {60, "namespaces"}, {61, "namespaces"}},
		"TestManyAtOnce/landlock":                                   {{58, "landlock"}},
		"TestWorkerIsHidden":                                        {{36, "namespaces"}, {36, "landlock"}},
		"TestProgramsWork/landlock":                                 nil,
		"TestAttacksWithoutNamespaces/none_allowed/43_x/namespaces": nil,
	} {
		counted(name, who, true, "")
		for a, as := range tally.ran {
			if i := slices.Index(as, who); i >= 0 {
				if !slices.Contains(want, a) {
					t.Errorf("%s counts as %v", name, a)
				}
				tally.ran[a] = slices.Delete(as, i, i+1)
				want = slices.DeleteFunc(want, func(w attempt) bool { return w == a })
			}
		}
		if len(want) > 0 {
			t.Errorf("%s does not count as %v", name, want)
		}
	}
}
