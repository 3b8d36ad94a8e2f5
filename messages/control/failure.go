package control

import (
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// Failure is an error of an operation, and what it means to callers. The failures of an operation differ in their codes.
type Failure struct {
	// Err is what a handler returns, perhaps wrapped with more, unless it returns a problem of this code; clients in Go get it
	// back, with the problem: errors.Is. nil: the code can mean different errors, and clients get the problem.
	Err    error
	Status int // over HTTP
	Code   messages.Code
	Text   string // when it happens: a sentence for the documents; empty: they do not name it
}

// Failure returns the failure that an error of the operation's handler is, nil if it is none that the operation declares.
func (o *Operation) Failure(err error) *Failure {
	for _, f := range o.Failures {
		if f.Err != nil && errors.Is(err, f.Err) {
			return &f
		}
	}
	return nil
}

// Meaning returns what a problem from a dispatcher means: an error that is both the problem and the failure that the operation
// declares for its code. It is nil if the operation declares none.
func (o *Operation) Meaning(err error) error {
	p, ok := errors.AsType[*messages.Problem](err)
	if !ok {
		return nil
	}
	for _, f := range o.Failures {
		if f.Code == p.Code && f.Status == p.Status && f.Err != nil {
			return &meant{f.Err, p}
		}
	}
	return nil
}

// meant is a problem that is a failure which its operation declares.
type meant struct {
	failure error
	problem *messages.Problem
}

func (m *meant) Error() string {
	if said := m.failure.Error(); said != m.problem.Detail {
		return said + ": " + m.problem.Detail
	}
	return m.problem.Detail
}

func (m *meant) Unwrap() []error { return []error{m.failure, m.problem} }

// FailureText says what the failures of the operation are, "" if none is for the documents.
func (o *Operation) FailureText() string {
	var said []string
	for _, f := range o.Failures {
		if f.Text != "" {
			said = append(said, fmt.Sprintf("%d %s: %s", f.Status, f.Code, f.Text))
		}
	}
	return strings.Join(said, " ")
}
