package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
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
	return Partitions{b, stream, max(1, b.division[stream])}
}

// NameOf returns the name of the stream that has what belongs to a run.
func (p Partitions) NameOf(run messages.Ref) string {
	return PartitionName(p.name, PartitionOf(run, p.n), p.n)
}

// Of returns the stream that has what belongs to a run.
func (p Partitions) Of(run messages.Ref) Stream { return p.bus.Stream(p.NameOf(run)) }

// Subject returns where a message of a run is published that belongs under a subject.
func (p Partitions) Subject(run messages.Ref, subject string) string {
	return p.SubjectIn(PartitionOf(run, p.n), subject)
}

// SubjectIn is Subject for what names no run, in one of the partitions.
func (p Partitions) SubjectIn(i int, subject string) string {
	if p.n <= 1 {
		return subject
	}
	if p.name == StreamTasks {
		subject = inLane(subject)
	}
	return PartitionSubject(subject, i, p.n)
}

// Number returns how many there are.
func (p Partitions) Number() int { return p.n }

// Name is that of one of them.
func (p Partitions) Name(i int) string { return PartitionName(p.name, i, p.n) }

// At is one of them.
func (p Partitions) At(i int) Stream { return p.bus.Stream(p.Name(i)) }

// Index says which of them a stream is.
func (p Partitions) Index(stream string) (i int, ok bool) {
	if p.n <= 1 {
		return 0, stream == p.name
	}
	number, ok := strings.CutPrefix(stream, p.name+"_")
	i, err := strconv.Atoi(number)
	return i, ok && err == nil && i >= 0 && i < p.n && p.Name(i) == stream
}

// Count is Stream.Count over all of them.
func (p Partitions) Count(ctx context.Context, filter string) (n int, err error) {
	for i := range p.n {
		in, err := p.At(i).Count(ctx, filter)
		if err != nil {
			return 0, err
		}
		n += in
	}
	return n, nil
}

// Divided reports whether there are several. Then the sequences of two runs tell no order.
func (p Partitions) Divided() bool { return p.n > 1 }

// Len is how many there are.
func (p Partitions) Len() int { return p.n }

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

// OwnsSubject is Owns of the run that the subject of a log or an event names.
func (p Partitions) OwnsSubject(stream, subject string) bool {
	return p.n <= 1 || p.NameOf(runOf(subject)) == stream
}

// Lag is how far the durable consumers of one name, one in each stream, are behind together. Ok is false unless each stream has one.
func (p Partitions) Lag(ctx context.Context, consumer string) (all Lag, ok bool, err error) {
	ok = true
	for _, name := range p.Names() {
		l, found, err := p.bus.Stream(name).Lag(ctx, consumer)
		if err != nil {
			return Lag{}, false, err
		}
		ok = ok && found
		all.Messages += l.Messages
		if all.Oldest.IsZero() || !l.Oldest.IsZero() && l.Oldest.Before(all.Oldest) {
			all.Oldest = l.Oldest
		}
	}
	return all, ok, nil
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

// Division says of each stream that can be divided in how many it is; one that does not exist is not in it.
type Division map[string]int

// Differs reports whether a stream is in another number of streams than it is to be in.
func (d Division) Differs(want Streams) bool {
	for stream, is := range d {
		if n := want.partitions(stream); n > 0 && n != is {
			return true
		}
	}
	return false
}

// partitions is in how many a stream that can be divided is to be; 0: as it is.
func (s Streams) partitions(stream string) int {
	if s.Partitions > 0 && len(s.Divide) > 0 && !slices.Contains(s.Divide, stream) {
		return 1
	}
	return s.Partitions
}

// divisible are the streams that can be several, by the run that a message belongs to. The first of them says how many a new fleet has.
func divisible() []string { return []string{StreamRuns, StreamEvents, StreamTasks} }

// lookup reads the configuration of a stream; ok is false when it does not exist.
type lookup func(name string) (c jetstream.StreamConfig, ok bool, err error)

// FindDivision asks in how many streams each of those is that can be divided.
func FindDivision(ctx context.Context, nc *nats.Conn) (Division, error) {
	js, err := NewJetStream(nc)
	if err != nil {
		return nil, err
	}
	look := func(name string) (c jetstream.StreamConfig, ok bool, err error) {
		s, err := js.Stream(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return c, false, nil
		case err != nil:
			return c, false, fmt.Errorf("look for stream %s: %w", name, err)
		}
		return s.CachedInfo().Config, true, nil
	}
	found := Division{}
	for _, stream := range divisible() {
		_, ok, err := look(stream)
		n := 1
		if err == nil && !ok {
			n, err = countPartitions(stream, look)
		}
		if err != nil {
			return nil, err
		}
		if n > 0 {
			found[stream] = n
		}
	}
	return found, nil
}

// divide is the division that Setup makes, of the one there is. Another number than was asked for is a *PartitionsError, but of a stream beside
// that of the logs which is whole, if it was not named: so it was in earlier versions, and it stays so.
func (s Streams) divide(ctx context.Context, nc *nats.Conn) (Division, error) {
	if s.Partitions < 0 || s.Partitions > MaxPartitions {
		return nil, fmt.Errorf("a fleet can have 1 to %d streams of a kind, not %d", MaxPartitions, s.Partitions)
	}
	for _, stream := range s.Divide {
		if !slices.Contains(divisible(), stream) {
			return nil, fmt.Errorf("%s cannot be divided, but %s can", stream, strings.Join(divisible(), ", "))
		}
	}
	d, err := FindDivision(ctx, nc)
	if err != nil {
		return nil, err
	}
	for _, stream := range divisible() {
		has, want := d[stream], s.partitions(stream)
		stays := has == 1 && len(s.Divide) == 0 && stream != StreamRuns
		if has > 0 && want > 0 && want != has && !stays {
			return nil, &PartitionsError{stream, has, want}
		}
		d[stream] = cmp.Or(has, want, d[divisible()[0]], 1)
	}
	return d, nil
}

// PartitionsError means that a stream is in another number of partitions than it was to be in. What is stored stays where it is.
type PartitionsError struct {
	Stream    string
	Has, Want int
}

func (e *PartitionsError) Error() string {
	return fmt.Sprintf("%s is in %d streams, not in %d: that is chosen before the first dispatcher starts, and changed only "+
		"while nothing is stored in it: see `longshore init --help`", e.Stream, e.Has, e.Want)
}

// countPartitions is in how many a stream is whose undivided form does not exist; 0: none. The first two say how many there are: one of
// them may be missing.
func countPartitions(stream string, look lookup) (int, error) {
	for i := range 2 {
		name := PartitionName(stream, i, MaxPartitions)
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

// findPartitions is countPartitions with the means of a Bus. It fails if one of them is missing.
func (b *Bus) findPartitions(ctx context.Context, stream string) (int, error) {
	look := func(name string) (c jetstream.StreamConfig, ok bool, err error) {
		var info struct {
			Config jetstream.StreamConfig `json:"config"`
		}
		err = b.Call(ctx, "STREAM.INFO."+name, nil, &info)
		switch {
		case Refused(err, CodeNoStream):
			return c, false, nil
		case err != nil:
			return c, false, fmt.Errorf("look for stream %s: %w", name, err)
		}
		return info.Config, true, nil
	}
	n, err := countPartitions(stream, look)
	if err != nil {
		return 0, err
	}
	for i := range n {
		name := PartitionName(stream, i, n)
		switch _, ok, err := look(name); {
		case err != nil:
			return 0, err
		case !ok:
			return 0, fmt.Errorf("stream %s does not exist: a dispatcher makes it again, or finishes what longshore init began", name)
		}
	}
	return n, nil
}

// divide makes n partitions of a stream that has one subject, whose second and third tokens name a run. What is stored in a partition
// stands under the same subject as in the whole stream, and is published under it once more for subscribers.
func divide(c jetstream.StreamConfig, n int) []jetstream.StreamConfig {
	if n <= 1 {
		return []jetstream.StreamConfig{c}
	}
	if c.Name == StreamTasks {
		return divideTasks(c, n)
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
