package api

import "github.com/longshore-run/longshore/dispatcher/auth"

// Operation is what tests see of a row of the table.
type Operation struct {
	ID, Method, Path string
	Needs            auth.Permission
}

// Operations are those of the API.
func Operations() []Operation {
	var out []Operation
	for _, op := range operations() {
		out = append(out, Operation{op.id, op.method, op.path, op.needs})
	}
	return out
}
