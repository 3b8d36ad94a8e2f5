package record

import "github.com/longshore-run/longshore/messages"

// Records are records inside a record, in the form of EncodeRecords.
type Records []Record

// MarshalJSON implements json.Marshaler.
func (rs Records) MarshalJSON() ([]byte, error) { return EncodeRecords(rs) }

// UnmarshalJSON implements json.Unmarshaler, strictly.
func (rs *Records) UnmarshalJSON(data []byte) (err error) {
	*rs, err = DecodeRecords(data)
	return err
}

// Forked is a record as a fork keeps it; ok is false for one that stays behind: it says who owned the run, what people
// asked of it, what its budget allowed, what its hooks did not hear, when it had its turn, that a call of the model was
// to be made again, what its children did, or how it ended. A reply that was kept is not paid for again. What people told it is kept.
func Forked(r Record) (kept Record, ok bool) {
	as := kinds()[r.Kind()].forked
	if as == nil {
		return nil, false
	}
	return as(r)
}

func (r *ModelReplied) forked() (*ModelReplied, bool) {
	c := *r
	c.Usage, c.Cost, c.Cached = messages.Usage{}, new(0.0), true
	return &c, true
}

func (r *Summarised) forked() (*Summarised, bool) {
	c := *r
	c.Usage, c.Cost, c.Cached = messages.Usage{}, new(0.0), true
	return &c, true
}
