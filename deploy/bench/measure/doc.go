// Package measure runs a measurement in processes of its own: Spawn starts this binary again in a role, and Play answers for it there. It
// reads what a process has used and what a connection has sent, and Report prints the results, one JSON object a line.
//
// It knows nothing of what is measured.
package measure
