package lanes_test

import (
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/worker/lanes"
)

// A worker shares its free slots between the tenants that have work, by weight. A tenant with a long queue does not
// hold up the others.
func Example() {
	order := lanes.New()
	order.Grant(map[string]int{"acme": 3}, nil) // the others weigh 1
	queued := map[queue.Lane]int{
		{Priority: messages.PriorityNormal, Tenant: "acme"}:   1000,
		{Priority: messages.PriorityNormal, Tenant: "globex"}: 1000,
	}
	for lane := range queued {
		order.Mark(lane)
	}
	took := map[string]int{}
	for range 100 { // times that eight slots are free
		for _, share := range order.Share(8) {
			n := min(share.N, queued[share.Lane])
			queued[share.Lane] -= n
			took[share.Lane.Tenant] += n
			order.Took(share, n, queued[share.Lane] == 0)
		}
	}
	fmt.Println(took)
	// Output:
	// map[acme:600 globex:200]
}
