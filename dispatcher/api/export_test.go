package api

import "github.com/longshore-run/longshore/messages/control"

// Operation is what tests see of a row of the table.
type Operation struct {
	ID, Method, Path string
	Needs            control.Permission
}

// Operations are those of the API.
func Operations() []Operation {
	var out []Operation
	for _, op := range operations() {
		out = append(out, Operation{op.id, op.method, op.path, op.needs})
	}
	return out
}
