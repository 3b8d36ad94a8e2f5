package bus

import "github.com/nats-io/nats.go/jetstream"

// BucketAudit is the object store that the auditor copies the audit to. It is made here and not by the auditor: a user who may
// make a stream may have it republish what he stores anywhere, or source what others have.
const BucketAudit = "AUDIT"

const streamAudit = "OBJ_" + BucketAudit

// auditStore is the stream of the object store, as the library would make it but for direct reads: the auditor writes there
// what he likes, and the server shall not publish that in its own name.
func auditStore(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Name, c.Description = streamAudit, "Copies of the audit's segments"
	c.Subjects = []string{"$O." + BucketAudit + ".C.>", "$O." + BucketAudit + ".M.>"}
	c.AllowDirect, c.AllowRollup, c.Discard, c.Compression = false, true, jetstream.DiscardNew, jetstream.S2Compression
	return c
}
