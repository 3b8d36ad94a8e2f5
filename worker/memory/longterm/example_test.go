package longterm_test

import (
	"fmt"

	"github.com/longshore-run/longshore/worker/memory/longterm"
)

func ExampleFilter() {
	item := longterm.Item{
		ID: "m1", Text: "The client wants invoices in euros.",
		Scope: longterm.Scope{Agent: "billing", Subject: "client-7"}, Fields: longterm.Fields{"weight": 3},
	}
	for _, f := range []longterm.Filter{
		{VisibleTo: &longterm.Scope{Agent: "billing", Subject: "client-7"}},
		{VisibleTo: &longterm.Scope{Agent: "sales"}},
		{Ranges: []longterm.Range{{Field: "weight", From: 2, To: 4}}},
	} {
		fmt.Println(f.Passes(&item))
	}
	// Output:
	// true
	// false
	// true
}
