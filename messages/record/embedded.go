package record

// Embedded is what it took to give texts of long-term memory vectors, in the record of what needed them.
type Embedded struct {
	Model  string   `json:"model"`
	Calls  int      `json:"calls"`
	Tokens int64    `json:"tokens,omitempty"` // of the texts; they count as input of the run
	Cost   *float64 `json:"cost,omitempty"`   // in US dollars, by the prices of the worker; nil: the price is unknown, and counts nothing
}

// nanos is what it cost in nano US dollars; nil is nothing.
func (e *Embedded) nanos() int64 {
	if e == nil {
		return 0
	}
	return nano(e.Cost)
}

// forked is the record of a call that is not paid for again.
func (r *ToolReturned) forked() (*ToolReturned, bool) {
	if r.Embedded == nil {
		return r, true
	}
	c := *r
	c.Embedded = nil
	return &c, true
}

func (r *MemoryRecalled) forked() (*MemoryRecalled, bool) {
	if r.Embedded == nil {
		return r, true
	}
	c := *r
	c.Embedded = nil
	return &c, true
}
