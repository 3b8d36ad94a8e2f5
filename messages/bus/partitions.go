package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
)

const (
	// MaxPartitions is how many there may be of a stream.
	MaxPartitions = 64
	// A message is published to a partition on a subject that begins so: then comes the number of the partition and the subject under
	// which the stream stores it.
	partitionPrefix = "part."
	// How many there are, in the metadata of each.
	partitionsKey = "longshore.partitions"
)

// PartitionName is the name of one of n partitions of a stream. A stream that is not divided has its own name.
func PartitionName(stream string, i, n int) string {
	if n <= 1 {
		return stream
	}
	return stream + "_" + strconv.Itoa(i)
}

// PartitionSubject is where a message of the i-th of n partitions is published that is stored under a subject. The subject has n, so that a
// process which takes the number to be another one can store nothing in the wrong place.
func PartitionSubject(subject string, i, n int) string {
	if n <= 1 {
		return subject
	}
	return partitionPrefix + strconv.Itoa(n) + "." + strconv.Itoa(i) + "." + subject
}

// PartitionOf says in which of n partitions a run is. The mapping function partition(n,1,2) of NATS gives the same for subjects that
// have the tenant and the run where the log of a run has them.
func PartitionOf(run messages.Ref, n int) int {
	if n <= 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(run.Tenant + run.Run)) // no hash returns an error
	return int(h.Sum32() % uint32(n))
}

// Partitions are the streams that together hold one kind of message. Each run is in one of them. It is a small value and asks the
// server nothing.
type Partitions struct {
	bus  *Bus
	name string
	n    int
}

// Partitions returns those of a stream, as [Open] found them: it must be among the streams that had to exist. Any other is not divided.
func (b *Bus) Partitions(stream string) Partitions {
	n := 1
	if stream == StreamRuns {
		n = max(1, b.partitions)
	}
	return Partitions{b, stream, n}
}

// NameOf returns the name of the stream that has what belongs to a run.
func (p Partitions) NameOf(run messages.Ref) string {
	return PartitionName(p.name, PartitionOf(run, p.n), p.n)
}

// Of returns the stream that has what belongs to a run.
func (p Partitions) Of(run messages.Ref) Stream { return p.bus.Stream(p.NameOf(run)) }

// Subject returns where a message of a run is published that is stored under a subject.
func (p Partitions) Subject(run messages.Ref, subject string) string {
	if p.n <= 1 {
		return subject
	}
	return PartitionSubject(subject, PartitionOf(run, p.n), p.n)
}

// Divided reports whether there are several. Then the sequences of two runs tell no order.
func (p Partitions) Divided() bool { return p.n > 1 }

// Names are those of all of them.
func (p Partitions) Names() []string {
	names := make([]string, p.n)
	for i := range names {
		names[i] = PartitionName(p.name, i, p.n)
	}
	return names
}

// Owns reports whether a stream is that of a run. What another one holds of it does not count: anyone who may publish to one partition
// may publish to all.
func (p Partitions) Owns(stream string, run messages.Ref) bool {
	return p.n <= 1 || p.NameOf(run) == stream
}

// Runs yields the runs that have a message under a filter of subjects whose second token is the tenant and whose third is the run, one
// stream after the other. A run comes once for each of its subjects. An error ends it.
func (p Partitions) Runs(ctx context.Context, filter string) iter.Seq2[messages.Ref, error] {
	return func(yield func(messages.Ref, error) bool) {
		for _, name := range p.Names() {
			for subject, err := range p.bus.Stream(name).Subjects(ctx, filter) {
				if err != nil {
					yield(messages.Ref{}, err)
					return
				}
				run := runOf(subject)
				if run.Check() == nil && p.Owns(name, run) && !yield(run, nil) {
					return
				}
			}
		}
	}
}

// runOf returns the run that a subject of a log or an event names; an empty one if it names none.
func runOf(subject string) messages.Ref {
	t := strings.SplitN(subject, ".", 4)
	if len(t) < 3 {
		return messages.Ref{}
	}
	return messages.Ref{Tenant: t[1], Run: t[2]}
}

// CountPartitions asks in how many streams the logs of runs are. It is 0 when there are none yet.
func CountPartitions(ctx context.Context, nc *nats.Conn) (int, error) {
	js, err := NewJetStream(nc)
	if err != nil {
		return 0, err
	}
	look := func(name string) (c jetstream.StreamConfig, ok bool, err error) {
		s, err := js.Stream(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return c, false, nil
		case err != nil:
			return c, false, err
		}
		return s.CachedInfo().Config, true, nil
	}
	if _, ok, err := look(StreamRuns); err != nil || ok {
		return 1, err
	}
	return countPartitions(look)
}

// partitions is how many there are to be. Another number than there are is a *PartitionsError.
func (s Streams) partitions(ctx context.Context, nc *nats.Conn) (int, error) {
	has, err := CountPartitions(ctx, nc)
	switch {
	case err != nil:
		return 0, fmt.Errorf("look for the logs of runs: %w", err)
	case s.Partitions < 0 || s.Partitions > MaxPartitions:
		return 0, fmt.Errorf("the logs of runs can be in 1 to %d streams, not in %d", MaxPartitions, s.Partitions)
	case has > 0 && s.Partitions > 0 && s.Partitions != has:
		return 0, &PartitionsError{Has: has, Want: s.Partitions}
	}
	return cmp.Or(has, s.Partitions, 1), nil
}

// PartitionsError means that the logs of runs are in another number of streams than they were to be in. That of a run stays where it is.
type PartitionsError struct{ Has, Want int }

func (e *PartitionsError) Error() string {
	return fmt.Sprintf("the logs of runs are in %d streams, not in %d: that is chosen before the first dispatcher starts, and changed only "+
		"while no log is stored: see `longshore init --help`", e.Has, e.Want)
}

// countPartitions is CountPartitions where RUNS does not exist. The first two say how many there are: one of them may be missing.
func countPartitions(look func(name string) (c jetstream.StreamConfig, ok bool, err error)) (int, error) {
	for i := range 2 {
		name := PartitionName(StreamRuns, i, MaxPartitions)
		c, ok, err := look(name)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		n, err := strconv.Atoi(c.Metadata[partitionsKey])
		if err != nil || n < 2 || n > MaxPartitions {
			return 0, fmt.Errorf("stream %s: its metadata %s is %q, but must be a number from 2 to %d: it was not made by longshore init",
				name, partitionsKey, c.Metadata[partitionsKey], MaxPartitions)
		}
		return n, nil
	}
	return 0, nil
}

// findPartitions is CountPartitions with the means of a Bus, where RUNS does not exist. It fails if one is missing.
func (b *Bus) findPartitions(ctx context.Context) (err error) {
	look := func(name string) (c jetstream.StreamConfig, ok bool, err error) {
		var info struct {
			Config jetstream.StreamConfig `json:"config"`
		}
		err = b.Call(ctx, "STREAM.INFO."+name, nil, &info)
		if Refused(err, CodeNoStream) {
			return c, false, nil
		}
		return info.Config, err == nil, err
	}
	if b.partitions, err = countPartitions(look); err != nil {
		return err
	}
	for i := range b.partitions {
		name := PartitionName(StreamRuns, i, b.partitions)
		switch _, ok, err := look(name); {
		case err != nil:
			return fmt.Errorf("look for stream %s: %w", name, err)
		case !ok:
			return fmt.Errorf("stream %s does not exist: a dispatcher makes it again, or finishes what longshore init began", name)
		}
	}
	return nil
}

// divide makes n partitions of a stream that has one subject, whose second and third tokens name a run. What is stored in a partition
// stands under the same subject as in the whole stream, and is published under it once more for subscribers.
func divide(c jetstream.StreamConfig, n int) []jetstream.StreamConfig {
	if n <= 1 {
		return []jetstream.StreamConfig{c}
	}
	subject := c.Subjects[0]
	var same strings.Builder
	wildcards := 0
	for i, token := range strings.Split(subject, ".") {
		if i > 0 {
			same.WriteByte('.')
		}
		if token == "*" {
			wildcards++
			token = "{{wildcard(" + strconv.Itoa(wildcards) + ")}}"
		}
		same.WriteString(token)
	}
	out := make([]jetstream.StreamConfig, n)
	for i := range out {
		p := c
		p.Name = PartitionName(c.Name, i, n)
		p.Description = fmt.Sprintf("%s Part %d of %d.", c.Description, i, n)
		p.Subjects = []string{PartitionSubject(subject, i, n)}
		p.SubjectTransform = &jetstream.SubjectTransformConfig{Source: p.Subjects[0], Destination: same.String()}
		p.RePublish = &jetstream.RePublish{Source: subject, Destination: same.String()}
		p.Metadata = map[string]string{partitionsKey: strconv.Itoa(n)}
		out[i] = p
	}
	return out
}
