//go:build amd64 || arm64

package process_test

import (
	"cmp"
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
var tally = newSheet()

type sheet struct {
	mu      sync.Mutex
	ran     map[attempt][]string // as whom
	leftOut map[attempt]string   // why, where it never ran
}

func newSheet() *sheet { return &sheet{ran: map[attempt][]string{}, leftOut: map[attempt]string{}} }

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

// count notes the end of a test, which its name belongs to: TestAttacks/landlock/43_fork_bomb, or TestManyAtOnce/landlock. Without a mode in the
// name it is that of the process, or both if the test is about neither. Of TestAttacks/landlock alone only matters that it was left out.
func (s *sheet) count(mode, name, as string, passed bool, leftOut string) {
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
	if words[0] == "TestAttacks" && len(words) == 2 && leftOut != "" { // the machine has not this mode
		attacks = attacksOnPrograms()
	}
	modes := []string{mode}
	if mode != "namespaces" && mode != "landlock" {
		modes = []string{"namespaces", "landlock"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range attacks {
		for _, mode := range modes {
			switch a := (attempt{n, mode}); {
			case passed && !slices.Contains(s.ran[a], as):
				s.ran[a] = append(s.ran[a], as)
			case leftOut != "":
				s.leftOut[a] = leftOut
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
		tally.count(os.Getenv(modeVariable), t.Name(), me(), !t.Failed() && !t.Skipped(), left)
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
	if flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" || flag.Lookup("test.list").Value.String() != "" || os.Getenv(modeVariable) != "" {
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
	for name, want := range map[string][]attempt{
		"TestAttacks/landlock/43_fork_bomb":                         {{43, "landlock"}},
		"TestAttacks/namespaces/59_to_61_reach_for_the_worker":      {{59, "namespaces"}, {60, "namespaces"}, {61, "namespaces"}},
		"TestManyAtOnce/landlock":                                   {{58, "landlock"}},
		"TestWorkerIsHidden":                                        {{36, "landlock"}, {36, "namespaces"}},
		"TestAttacks/landlock":                                      nil,
		"TestProgramsWork/landlock":                                 nil,
		"TestAttacksWithoutNamespaces/none_allowed/43_x/namespaces": nil,
	} {
		s := newSheet()
		s.count("", name, "root", true, "")
		got := slices.SortedFunc(maps.Keys(s.ran), func(a, b attempt) int { return cmp.Or(a.attack-b.attack, strings.Compare(a.mode, b.mode)) })
		if !slices.Equal(got, want) {
			t.Errorf("%s counts as %v, want %v", name, got, want)
		}
	}
	s := newSheet()
	s.count("landlock", "TestAttacks/43_fork_bomb", "root", true, "")
	s.count("", "TestAttacks/namespaces", "root", false, "no such mode")
	if len(s.ran) != 1 || len(s.ran[attempt{43, "landlock"}]) != 1 || len(s.leftOut) != len(attacksOnPrograms()) || s.leftOut[attempt{43, "namespaces"}] != "no such mode" {
		t.Errorf("%v, %v", s.ran, s.leftOut)
	}
}
