package measure

import "context"

// Background is something that runs until it is stopped.
type Background struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // once it has ended
}

// InBackground runs f until ctx ends or Stop is called.
func InBackground(ctx context.Context, f func(context.Context) error) *Background {
	ctx, cancel := context.WithCancel(ctx)
	b := &Background{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(b.ended)
		b.err = f(ctx)
	}()
	return b
}

// Ended is closed when it has ended.
func (b *Background) Ended() <-chan struct{} { return b.ended }

// Err is why it has ended; it may be called then.
func (b *Background) Err() error { return b.err }

// Stop ends it, and returns its error.
func (b *Background) Stop() error {
	b.cancel()
	<-b.ended
	return b.err
}
