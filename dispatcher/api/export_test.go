package api

import "github.com/longshore-run/longshore/messages/control"

// Operation is what tests see of a row of the table.
type Operation struct {
	ID, Method, Path string
	Needs            control.Permission
}

// Operations are those of an API that is handed no table.
func Operations() []Operation { return OperationsOf(control.Operations()) }

// OperationsOf are those of an API with a table.
func OperationsOf(table control.Table) []Operation {
	var out []Operation
	for _, op := range operations(table) {
		out = append(out, Operation{op.id, op.method, op.path, op.needs})
	}
	return out
}
