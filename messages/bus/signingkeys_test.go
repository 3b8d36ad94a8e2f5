package bus_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
)

func TestKeysAreRead(t *testing.T) {
	k := bustest.NewKey(t)
	again, err := bus.ParseSigningKey(k.Seed() + "\n")
	if err != nil || again.Public() != k.Public() {
		t.Fatalf("%v, %v", again, err)
	}
	for _, shown := range []string{fmt.Sprint(k), fmt.Sprintf("%+v %#v %s", k, k, k)} {
		if strings.Contains(shown, k.Seed()[len("lscs_"):]) {
			t.Errorf("it shows itself: %s", shown)
		}
	}
	if keys, err := bus.ParseControlKeys(" "); err != nil || keys.Any() {
		t.Errorf("none: %v, %v", keys, err)
	}
	for name, list := range map[string]string{
		"a secret": k.Seed(), "too short": k.Public()[:20], "no prefix": k.Public()[5:], "empty among others": k.Public() + ",",
		"bad bits": k.Public()[:47] + "_", "too many": strings.Repeat(k.Public()+",", 16) + k.Public(),
	} {
		if _, err := bus.ParseControlKeys(list); err == nil || strings.Contains(err.Error(), k.Seed()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{"public": k.Public(), "empty": "", "cut": k.Seed()[:30]} {
		if _, err := bus.ParseSigningKey(text); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
