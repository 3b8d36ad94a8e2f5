package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// APIPrefix is where JetStream takes requests. All but DIRECT.GET are answered by the leader.
const APIPrefix = "$JS.API."

// Call makes one request of the JetStream API, and repeats it while there is no answer. All requests of this package
// may be made twice. Both req and resp may be nil.
func (b *Bus) Call(ctx context.Context, subject string, req, resp any) error {
	return b.Retry(ctx, func(ctx context.Context) error { return b.callOnce(ctx, subject, req, resp) })
}

func (b *Bus) callOnce(ctx context.Context, subject string, req, resp any) error {
	if req == nil {
		return b.ask(ctx, subject, nil, resp)
	}
	body, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	return b.ask(ctx, subject, body, resp)
}

// ask sends a request once.
func (b *Bus) ask(ctx context.Context, subject string, body []byte, resp any) error {
	m, err := b.nc.RequestWithContext(ctx, APIPrefix+subject, body)
	if err != nil {
		return err
	}
	if bytes.Contains(m.Data, []byte(`"error"`)) { // else it is not worth reading twice
		var failed struct {
			Error *jetstream.APIError `json:"error"`
		}
		if err := json.Unmarshal(m.Data, &failed); err != nil {
			return fmt.Errorf("decode answer: %w", err)
		}
		if failed.Error != nil {
			return failed.Error
		}
	}
	if resp == nil {
		return nil
	}
	if err := json.Unmarshal(m.Data, resp); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}
