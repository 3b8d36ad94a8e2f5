// Package contract describes what travels between Longshore and others: JSON Schemas (2020-12) of tasks, events, results,
// requests and problems, and an AsyncAPI 3.1 document of subjects. All of it is generated from the Go types of messages and
// the tables of this package; docs/schemas has a copy.
//
// A schema says less than the code that reads: the length of a text, or fields that need one another, are not in it.
package contract
