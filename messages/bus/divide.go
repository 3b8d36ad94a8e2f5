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

	"github.com/longshore-run/longshore/messages"
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

// Redivide removes the streams that can be divided, so that Setup makes them in another number. None may have a message of a run; what
// dispatchers set again when they start, sweeps and the next occurrences of schedules, does not count. Each stream is
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
	for _, want := range all { // before any is closed: what fires meanwhile would be lost
		if err := unused(ctx, js, want.Name); err != nil {
			return err
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
		if _, err = js.UpdateStream(ctx, shut); err != nil {
			return reopen(fmt.Errorf("close stream %s: %w", want.Name, err))
		}
		if err := unused(ctx, js, want.Name); err != nil {
			return reopen(err)
		}
	}
	if err := narrowIntake(ctx, js); err != nil {
		return reopen(err)
	}
	for _, c := range slices.Backward(closed) { // the first, which says how many there are, goes last
		if err := js.DeleteStream(ctx, c.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("remove stream %s: %w", c.Name, err)
		}
	}
	return nil
}

// unused is a *StoredError when a stream has a message that is lost with it.
func unused(ctx context.Context, js jetstream.JetStream, name string) error {
	stream, err := js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	var info *jetstream.StreamInfo
	if err == nil {
		info, err = stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	}
	if err != nil {
		return fmt.Errorf("look at stream %s: %w", name, err)
	}
	left := info.State.Msgs
	if isTasks(name) {
		for subject, n := range info.State.Subjects {
			if setAgain(subject) {
				left -= n
			}
		}
	}
	if left > 0 {
		return &StoredError{name, left}
	}
	return nil
}

// setAgain reports whether a dispatcher that starts publishes the message of a subject of the queue again.
func setAgain(subject string) bool {
	t := strings.Split(subject, ".")
	if t[0] == "sched" {
		return t[1] == "next" || len(t) == 2 // the next occurrence of a schedule; a sweep
	}
	return len(t) == 5 && t[1] == string(messages.PriorityWake) && t[3] == messages.NoRun // an errand for all runs
}

// narrowIntake takes from INTAKE the subjects that an undivided queue has. Setup gives them back to it when the queue is divided.
func narrowIntake(ctx context.Context, js jetstream.JetStream) error {
	stream, err := js.Stream(ctx, StreamIntake)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err == nil {
		_, err = updateIntake(ctx, js, intake(jetstream.StreamConfig{}, false), stream.CachedInfo().Config)
	}
	if err != nil {
		return fmt.Errorf("change the subjects of stream %s: %w", StreamIntake, err)
	}
	return nil
}

// DividePermissions returns a NATS configuration whose users may do with the partitions of each stream that is to be divided what they may do with
// the stream. What they may do with EVENTS as a whole stays, for a fleet of an earlier version has it so.
func DividePermissions(config string, want Streams) string {
	return regexp.MustCompile(`"[^"\n]*"`).ReplaceAllStringFunc(config, func(s string) string {
		tokens := strings.Split(strings.Trim(s, `"`), ".")
		if published := dividedSubjects(tokens, want); published != nil {
			return `"` + strings.Join(published, `", "`) + `"`
		}
		for _, stream := range divisible() {
			at, n := slices.Index(tokens, stream), want.partitions(stream)
			if at < 0 || tokens[0] != "$JS" || n <= 1 {
				continue
			}
			each := make([]string, n, n+1)
			for i := range each {
				tokens[at] = PartitionName(stream, i, n)
				each[i] = `"` + strings.Join(tokens, ".") + `"`
			}
			if stream == StreamEvents || s == `"$JS.API.STREAM.INFO.`+stream+`"` { // each process asks first whether it is divided
				each = append(each, s)
			}
			return strings.Join(each, ", ")
		}
		return s
	})
}

// dividedSubjects are those on which users publish to partitions who publish on a subject to the stream; nil: it is none of a stream that is to
// be divided.
func dividedSubjects(tokens []string, want Streams) []string {
	subject := strings.Join(tokens, ".")
	stream := map[string]string{"runs": StreamRuns, "events": StreamEvents, "sched": StreamTasks, "tasks": StreamTasks}[tokens[0]]
	n := want.partitions(stream)
	if stream == "" || n <= 1 {
		return nil
	}
	in := strings.Replace(PartitionSubject("", 0, n), ".0.", ".*.", 1)
	switch {
	case subject == "runs.*.*.log", tokens[0] == "sched":
		return []string{in + subject}
	case subject == "events.*.*.*", subject == "events.*._.*":
		return []string{in + subject, subject}
	case subject == tasksPrefix+">":
		return []string{in + "lanes.>", in + subject}
	case len(tokens) != 4 || tokens[0]+"." != tasksPrefix || tokens[2] != "*":
		return nil
	}
	lanes := in + "lanes." + tokens[1] + ".*.*.*"
	if tokens[1] == string(messages.PriorityWake) {
		return []string{lanes}
	}
	return []string{lanes, subject} // a program publishes a task without knowing its partition
}
