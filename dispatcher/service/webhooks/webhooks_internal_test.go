package webhooks

import (
	"strconv"
	"testing"
)

// A tenant whose receivers are all slow, each with a name of its own, leaves room for others.
func TestWebhooksOfOneTenantLeaveRoom(t *testing.T) {
	var c calls
	n := 0
	for i := range 2 * together {
		if c.enter("h"+strconv.Itoa(i), "greedy") {
			n++
		}
	}
	if n != perTenant || n >= together {
		t.Errorf("one tenant has %d of %d permits", n, together)
	}
	if !c.enter("h0", "modest") {
		t.Error("another tenant gets no permit")
	}
	c.leave("h0", "modest")
	for i := range n {
		c.leave("h"+strconv.Itoa(i), "greedy")
	}
	if len(c.at) != 0 || len(c.of) != 0 {
		t.Errorf("left behind: %v, %v", c.at, c.of)
	}
}
