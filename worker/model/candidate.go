package model

import "context"

// Candidate is a model that a request may go to.
type Candidate struct {
	Endpoint     string // name
	Model        string // the endpoint's name of it; empty: the endpoint's own default
	Capabilities Capabilities
	In, Out      float64 // USD per million tokens; they count when Priced
	Priced       bool
}

// String is the candidate as agents name it.
func (c Candidate) String() string {
	if c.Model == "" {
		return c.Endpoint
	}
	return c.Endpoint + "/" + c.Model
}

// Selector chooses among the candidates that can take a request, given in the agent's order of priority. It returns
// those to try, best first: it may reorder and leave out. What was not offered to it is not tried. Quick, and safe for
// concurrent use.
type Selector interface {
	Select(ctx context.Context, r Request, from []Candidate) []Candidate
}
