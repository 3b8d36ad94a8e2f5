package control

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// LogRequest asks for a page of a run's log.
type LogRequest struct {
	Tenant string `json:"tenant,omitempty"` // default "default"
	ID     string `json:"id"`
	After  uint64 `json:"after,omitempty"`  // entries with a higher sequence
	Offset int    `json:"offset,omitempty"` // into the first of them, when it comes in parts
	Limit  int    `json:"limit,omitempty"`  // entries; default: as many as fit the answer, which is the most. Older dispatchers refuse it
}

// Check says which field is wrong.
func (r *LogRequest) Check() error {
	if r.Offset < 0 {
		return &messages.FieldError{Field: "offset", Reason: "is negative"}
	}
	if r.Limit < 0 {
		return &messages.FieldError{Field: "limit", Reason: "is negative"}
	}
	return CheckAfter(r.After)
}

// LogPage is a page of a run's log, oldest entry first: entries, or a part of one that is too large for a message.
type LogPage struct {
	Entries []EntryCopy `json:"entries"`
	Part    *LogPart    `json:"part,omitempty"`
	More    bool        `json:"more,omitempty"` // there was more when the page was read: ask after its last entry
}

// LogPart is a part of a EntryCopy as JSON.
type LogPart struct {
	Seq    uint64 `json:"seq"`
	Offset int    `json:"offset"` // of the part, in bytes
	Size   int    `json:"size"`   // of the whole
	Data   []byte `json:"data"`
}

// EntryCopy is an entry outside its log.
type EntryCopy struct {
	Seq     uint64          `json:"seq"`
	Head    json.RawMessage `json:"head"`    // see EncodeHead
	Records json.RawMessage `json:"records"` // see EncodeRecords
}

// NewEntryCopy is the entry as a EntryCopy.
func NewEntryCopy(e record.Entry) (EntryCopy, error) {
	head, err := record.EncodeHead(&e.Head)
	if err != nil {
		return EntryCopy{}, err
	}
	records, err := record.EncodeRecords(e.Records)
	return EntryCopy{Seq: e.Seq, Head: json.RawMessage(head), Records: records}, err
}

// Entry reads it, strictly. ErrNewerVersion: a newer program wrote the log.
func (l EntryCopy) Entry() (record.Entry, error) {
	head, err := record.DecodeHead(string(l.Head))
	if err != nil {
		return record.Entry{}, fmt.Errorf("read entry %d: %w", l.Seq, err)
	}
	records, err := record.DecodeRecords(l.Records)
	if err != nil {
		return record.Entry{}, fmt.Errorf("read entry %d: %w", l.Seq, err)
	}
	return record.Entry{Head: head, Records: records}.At(l.Seq), nil
}

// RunCheck is what came of planning the decisions of a run again, by its log.
type RunCheck struct {
	Decisions int `json:"decisions"` // that were made again, and were the same
	// Unchecked are decisions that no planner makes: of the clock, of prices, of the platform, or of a kind that the code which
	// planned cannot make again.
	Unchecked  int            `json:"unchecked"`
	Difference *OtherDecision `json:"difference,omitempty"` // the first one; what comes after it was not looked at
	Version    string         `json:"version,omitempty"`    // of the dispatcher that planned
}

// OtherDecision is a decision that would be another one today.
type OtherDecision struct {
	Seq      uint64    `json:"seq"` // of the entry
	At       time.Time `json:"at"`
	Step     int       `json:"step"`
	Recorded string    `json:"recorded"` // in words, shortened
	Planned  string    `json:"planned"`
}
