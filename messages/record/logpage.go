package record

import (
	"encoding/json"
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

// LogRequest asks for a page of a run's log.
type LogRequest struct {
	Tenant string `json:"tenant,omitempty"` // default "default"
	ID     string `json:"id"`
	After  uint64 `json:"after,omitempty"`  // entries with a higher sequence
	Offset int    `json:"offset,omitempty"` // into the first of them, when it comes in parts
}

// Check says which field is wrong.
func (r *LogRequest) Check() error {
	if r.Offset < 0 {
		return &messages.FieldError{Field: "offset", Reason: "is negative"}
	}
	return messages.CheckAfter(r.After)
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
func NewEntryCopy(e Entry) (EntryCopy, error) {
	head, err := EncodeHead(&e.Head)
	if err != nil {
		return EntryCopy{}, err
	}
	records, err := EncodeRecords(e.Records)
	return EntryCopy{Seq: e.Seq, Head: json.RawMessage(head), Records: records}, err
}

// Entry reads it, strictly. ErrNewerVersion: a newer program wrote the log.
func (l EntryCopy) Entry() (Entry, error) {
	head, err := DecodeHead(string(l.Head))
	if err != nil {
		return Entry{}, fmt.Errorf("read entry %d: %w", l.Seq, err)
	}
	records, err := DecodeRecords(l.Records)
	if err != nil {
		return Entry{}, fmt.Errorf("read entry %d: %w", l.Seq, err)
	}
	return Entry{Head: head, Records: records}.At(l.Seq), nil
}
