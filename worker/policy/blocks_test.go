package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/policy"
)

func texts(all ...string) (out []messages.Block) {
	for _, text := range all {
		out = append(out, messages.Block{Text: text})
	}
	return out
}

// What only several blocks together hold is found too, and nothing that one of them holds is lost for it.
func TestBlocksAreJudgedTogether(t *testing.T) {
	image := messages.Block{Image: &messages.Image{URL: "https://a.example/x.png"}}
	r := rules(t, "fleet", `{"content":[{"name":"c","category":"card"}]}`)
	for name, c := range map[string]struct{ in, out []messages.Block }{
		"apart":           {texts("a", "b"), texts("a", "b")},
		"of one":          {texts("4111111111111111", "b"), texts("[redacted]", "b")},
		"of two":          {texts("it is 4111 1111", " 1111 1111."), texts("it is [redacted].")},
		"around an image": {[]messages.Block{{Text: "41111111"}, image, {Text: "11111111"}}, []messages.Block{{Text: "[redacted]"}, image}},
		"before a digit":  {texts("4111111111111111", "1"), texts("[redacted]", "1")},
	} {
		out, found, blocked := r.Blocks(messages.PolicyInput, "", c.in)
		if diff := cmp.Diff(c.out, out); diff != "" || blocked || (len(found) > 0) == (name == "apart") {
			t.Errorf("%s: %s, found %v, blocked %t", name, diff, found, blocked)
		}
	}
	stop := rules(t, "fleet", `{"content":[{"name":"m","category":"email"},{"name":"c","category":"card","action":"block"}]}`)
	out, found, blocked := stop.Blocks(messages.PolicyInput, "", texts("41111111", "11111111 ", "ann@example.com"))
	if !blocked || out != nil || found[len(found)-1].Rule != "c" {
		t.Errorf("%v, found %+v, blocked %t", out, found, blocked)
	}
	var none *policy.Rules
	if out, _, _ := none.Blocks(messages.PolicyInput, "", texts("a")); len(out) != 1 {
		t.Error("no rules take a block out")
	}
}
