package control

import (
	"slices"
	"sync"
)

// Table is what can be asked for. Everything that serves or describes operations is handed one: the NATS service, the
// HTTP API and the contract documents. Adding an operation to it adds it to all of them.
type Table []Operation

// Of returns the operation of a subject of the fleet, nil if the table has none.
func (t Table) Of(subject string) *Operation {
	return t.first(func(o *Operation) bool { return o.Subject == subject })
}

func (t Table) first(is func(*Operation) bool) *Operation {
	i := slices.IndexFunc(t, func(o Operation) bool { return is(&o) })
	if i < 0 {
		return nil
	}
	o := t[i]
	return &o
}

// OverNATS returns the operations that have a subject.
func (t Table) OverNATS() Table {
	return slices.DeleteFunc(slices.Clone(t), func(o Operation) bool { return o.Subject == "" })
}

// own is the table of Longshore itself, made once.
var own = sync.OnceValue(func() Table { //nolint:gochecknoglobals // a constant, made once
	return slices.Concat(
		runs(), uploads(), people(), sessions(), workspaces(), memories(), data(), batches(), agents(), prompts(), schedules(), deadLetters(), quotas(), fleet(), keys(), lists(),
	)
})

// Operations returns the table of Longshore itself, by noun. It is a copy, which the caller may append to.
func Operations() Table { return slices.Clone(own()) }

// Of returns the operation of a subject in Longshore's own table, nil if it has none.
func Of(subject string) *Operation { return own().Of(subject) }

// ByID returns the operation with an id of the OpenAPI document in Longshore's own table, nil if it has none.
func ByID(id string) *Operation {
	return own().first(func(o *Operation) bool { return o.ID == id })
}
