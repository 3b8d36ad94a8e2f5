package toolbox

import (
	"context"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// A tool that is not safe by default is not offered without a grant.
func TestOnlySafeToolsNeedNoGrant(t *testing.T) {
	type none struct{}
	for _, isSafe := range []bool{true, false} {
		tool, err := tools.Func(messages.ToolSpec{Name: "dial", Description: "Dials.", Effect: messages.EffectOnce, SafeByDefault: isSafe},
			func(context.Context, tools.Call, none) (tools.Result, error) { return tools.Text("dialled"), nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := safe([]tools.Tool{tool}); (err == nil) != isSafe || err != nil && !strings.Contains(err.Error(), "the tool dial reaches more than its run") {
			t.Errorf("safe by default %t: %v", isSafe, err)
		}
	}
}
