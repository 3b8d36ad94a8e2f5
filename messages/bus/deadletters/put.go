package deadletters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// PutTask stores the dead letter of a run; there is one for each run. A letter with a ticket is separate from it; there is one
// for each ticket.
func (st *Store) PutTask(ctx context.Context, run messages.Ref, agent string, d messages.Dead) error {
	if err := run.Check(); err != nil {
		return err
	}
	if !strict.ValidToken(agent) {
		agent = "_"
	}
	if d.Ticket != 0 {
		return st.put(ctx, run.DeadTicketSubject(agent, d.Ticket), d)
	}
	return st.put(ctx, run.DeadSubject(agent), d)
}

// PutRaw stores the dead letter of a message whose subject names no run; there is one for each subject and ticket.
func (st *Store) PutRaw(ctx context.Context, subject string, d messages.Dead) error {
	sum := sha256.Sum256([]byte(subject + "\x00" + strconv.FormatUint(d.Ticket, 10)))
	return st.put(ctx, "dead._._."+hex.EncodeToString(sum[:]), d)
}

// PutWebhook stores the dead letter of a webhook that could not be delivered; there is one for each webhook.
func (st *Store) PutWebhook(ctx context.Context, j *messages.WebhookJob, d messages.Dead) error {
	if err := j.Check(); err != nil {
		return err
	}
	return st.put(ctx, j.DeadSubject(), d)
}

// put stores a letter unless its subject has one. The reason is kept even if the task is too large to be stored.
func (st *Store) put(ctx context.Context, subject string, d messages.Dead) error {
	body, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode dead letter: %w", err)
	}
	if err := st.bus.CheckSize(body); err != nil {
		// In base64 the task is larger than it was when it came. The reason must not be lost with it.
		st.bus.Log().WarnContext(ctx, "dead letter without its task", "subject", d.Subject, "bytes", len(d.Task), "err", err)
		d.Task = nil
		if body, err = json.Marshal(d); err != nil {
			return fmt.Errorf("encode dead letter: %w", err)
		}
	}
	return st.bus.StoreFirst(ctx, &nats.Msg{Subject: subject, Header: nats.Header{}, Data: body})
}
