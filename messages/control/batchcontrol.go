package control

import "github.com/longshore-run/longshore/messages"

// Subjects of the micro service's endpoints for batches. Lines are stored by the client; heads only by a dispatcher.
const (
	SubjectBatchOpen   = "longshore.batch_open"   // BatchOpen -> Batch; conflict when the id is another's
	SubjectBatchSeal   = "longshore.batch_seal"   // BatchSeal -> Batch; nothing runs before it
	SubjectBatchStatus = "longshore.batch_status" // RunRequest -> Batch
	SubjectBatchList   = "longshore.batch_list"   // BatchListRequest -> BatchList
	SubjectBatchCancel = "longshore.batch_cancel" // CancelRequest -> Batch; conflict when it has ended
)

// BatchOpen begins a batch, or an attempt to continue with one that was cut.
type BatchOpen struct {
	messages.BatchRef
	messages.BatchSettings
	Submitter string `json:"submitter"` // a fresh token: an older attempt can no longer seal the batch
}

// BatchSeal says that all lines were read.
type BatchSeal struct {
	messages.BatchRef
	Submitter string               `json:"submitter"`
	Lines     int                  `json:"lines"`            // accepted, and stored unless there are wrong ones that count
	Invalid   int                  `json:"invalid"`          // refused
	Digest    string               `json:"digest"`           // of the accepted lines
	Errors    []messages.LineError `json:"errors,omitempty"` // the first of the refused
}

// BatchListRequest asks for the batches of a tenant.
type BatchListRequest struct {
	Tenant string `json:"tenant,omitempty"` // default "default"
	Limit  int    `json:"limit,omitempty"`  // default and most 200
}

// BatchList is the batches of a tenant, newest first.
type BatchList struct {
	Batches []messages.Batch `json:"batches"`
	More    bool             `json:"more,omitempty"` // there are older ones
}

// Batch of the request, with the tenant's default; checked.
func (r RunRequest) Batch() (messages.BatchRef, error) {
	ref := messages.BatchRef(r)
	if ref.Tenant == "" {
		ref.Tenant = messages.DefaultTenant
	}
	return ref, ref.Check()
}
