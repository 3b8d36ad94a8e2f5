package bus

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// closedPrefix begins the subject of a stream that is about to be removed. No process publishes there.
const closedPrefix = "closed."

// StoredError means that a stream still has messages of runs.
type StoredError struct {
	Stream   string
	Messages uint64
}

func (e *StoredError) Error() string {
	return fmt.Sprintf("%s has messages of runs (%d): the number of streams can change only when none is stored. Let the runs end and their "+
		"retention pass, or make a fleet beside this one", e.Stream, e.Messages)
}

// Redivide removes the streams that can be divided, which must all be empty, so that Setup makes them in another number. Each stream is
// closed to appends before it is looked at, and opened again when one has a message: then the error is a *StoredError and nothing has
// changed. All dispatchers and workers must be stopped: appends of one that runs fail meanwhile, and afterwards until it is started again. If
// it is cut off, call it again.
func Redivide(ctx context.Context, nc *nats.Conn) error {
	js, err := NewJetStream(nc)
	if err != nil {
		return err
	}
	division, err := FindDivision(ctx, nc)
	if err != nil {
		return err
	}
	var all []jetstream.StreamConfig
	for _, whole := range (Streams{}).divisible() {
		if n := division[whole.Name]; n > 0 {
			all = append(all, divide(whole, n)...)
		}
	}
	var closed []jetstream.StreamConfig
	reopen := func(why error) error {
		for _, c := range closed {
			if _, err := js.UpdateStream(ctx, c); err != nil {
				return errors.Join(why, fmt.Errorf("open stream %s again, whose subjects must be %s: %w", c.Name, strings.Join(c.Subjects, " "), err))
			}
		}
		return why
	}
	for _, want := range all {
		stream, err := js.Stream(ctx, want.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) { // an earlier call was cut off
			continue
		}
		if err != nil {
			return reopen(fmt.Errorf("look at stream %s: %w", want.Name, err))
		}
		c := stream.CachedInfo().Config
		c.Subjects, c.SubjectTransform, c.RePublish = want.Subjects, want.SubjectTransform, want.RePublish
		closed = append(closed, c)
		shut := c
		shut.Subjects, shut.SubjectTransform, shut.RePublish = []string{closedPrefix + want.Name}, nil, nil
		if stream, err = js.UpdateStream(ctx, shut); err != nil {
			return reopen(fmt.Errorf("close stream %s: %w", want.Name, err))
		}
		info, err := stream.Info(ctx)
		if err != nil {
			return reopen(fmt.Errorf("look at stream %s: %w", want.Name, err))
		}
		if info.State.Msgs > 0 {
			return reopen(&StoredError{want.Name, info.State.Msgs})
		}
	}
	for _, c := range slices.Backward(closed) { // the first, which says how many there are, goes last
		if err := js.DeleteStream(ctx, c.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("remove stream %s: %w", c.Name, err)
		}
	}
	return nil
}

// DividePermissions returns a NATS configuration whose users may do with n partitions of RUNS and of EVENTS what they may do with the whole streams.
// What they may do with EVENTS as a whole stays, for a fleet of an earlier version has it so.
func DividePermissions(config string, n int) string {
	if n <= 1 {
		return config
	}
	return regexp.MustCompile(`"[^"\n]*"`).ReplaceAllStringFunc(config, func(s string) string {
		subject := strings.Trim(s, `"`)
		published := strings.Replace(PartitionSubject(subject, 0, n), ".0.", ".*.", 1)
		switch subject {
		case "runs.*.*.log":
			return `"` + published + `"`
		case "events.*.*.*", "events.*._.*":
			return `"` + published + `", ` + s
		}
		tokens := strings.Split(subject, ".")
		at := slices.IndexFunc(tokens, func(t string) bool { return slices.Contains(divisible(), t) })
		if at < 0 || tokens[0] != "$JS" {
			return s
		}
		stream := tokens[at]
		each := make([]string, n, n+1)
		for i := range each {
			tokens[at] = PartitionName(stream, i, n)
			each[i] = `"` + strings.Join(tokens, ".") + `"`
		}
		if stream == StreamEvents || subject == "$JS.API.STREAM.INFO.RUNS" { // each process asks first whether the logs are divided
			each = append(each, s)
		}
		return strings.Join(each, ", ")
	})
}
