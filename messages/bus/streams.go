package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages/queue"
)

// Streams and the consumer of the workers.
const (
	StreamTasks  = "TASKS"
	StreamRuns   = "RUNS"
	StreamEvents = "EVENTS"
	StreamBlobs  = "BLOBS"
	StreamDead   = "DEAD"
	BucketAgents = "AGENTS"
	// BucketSessions has the order of each session.
	BucketSessions = "SESSIONS"

	BucketPrompts = "PROMPTS"
	// BucketQuotas has what operators grant tenants, agents and providers.
	BucketQuotas = "QUOTAS"

	// ConsumerWorkers has what comes before all tasks: wake-ups, errands, and what names no run. Tasks are in lanes.
	ConsumerWorkers = "workers"

	StreamAgents   = "KV_" + BucketAgents
	StreamPrompts  = "KV_" + BucketPrompts
	StreamQuotas   = "KV_" + BucketQuotas
	StreamSessions = "KV_" + BucketSessions
)

// What the server must be able to do: schedules and time to live came with API level 1 and 2, the schedules' cron
// and rollup with 4.
const (
	minLevel   = 4
	minVersion = "2.14"
)

const (
	duplicateWindow = 2 * time.Minute
	defaultAckWait  = 30 * time.Second
	setupWait       = 5 * time.Second // for one attempt to make all streams of a cluster
	maxAckPending   = 65_536          // tasks that all workers together may hold; the server's default is 1000
	maxConsumers    = 1_024           // explicit, for a default may change; TASKS has MaxLanes
	maxWatchers     = 100_000         // consumers of EVENTS: one per watcher
	agentHistory    = 64              // revisions kept; the most that a bucket can
)

// Streams says how the streams are to be.
type Streams struct {
	Replicas    int           // of every stream. Default 1 for new ones, and any for those that exist
	EventMaxAge time.Duration // how long events are kept. Default 14 days
	DeadMaxAge  time.Duration // how long dead letters are kept. Default 30 days
	LogsMaxAge  time.Duration // how long log entries are kept. Default 7 days
	// LogsMaxBytes bounds all log entries together. Default DefaultLogsMaxBytes; only of a stream that is made now.
	LogsMaxBytes int64
	AckWait      time.Duration // without a sign of life a task is delivered again. Default 30 s
	// Partitions is in how many streams each of those is that can be divided: 1 to MaxPartitions. Default as it is, and 1 for new ones.
	Partitions int
	// Divide is which streams Partitions is for; those it leaves out are whole. Default all that can be divided.
	Divide []string
	// Division is that of the streams that exist: an Inspector compares with it, and Setup finds it.
	Division Division
}

const day = 24 * time.Hour

// Setup creates the streams, the bucket and the workers' consumer, or checks that those that exist have the settings
// that the protocol needs. A different one is an error that says what to change; only the consumers' settings, and what
// TASKS did not have in earlier versions, are changed in place. It may be called at any time, by several processes at once.
func Setup(ctx context.Context, nc *nats.Conn, s Streams) error {
	js, err := NewJetStream(nc)
	if err != nil {
		return err
	}
	b := &Bus{nc: nc, budget: defaultBudget, answer: setupWait}
	return b.Retry(ctx, func(ctx context.Context) error { // a cluster that starts may not have its leaders yet
		if err := checkServer(ctx, nc, js); err != nil {
			return err
		}
		if s.Division, err = s.divide(ctx, nc); err != nil {
			return err
		}
		for _, want := range s.configs() {
			if err := ensureStream(ctx, js, want, s.Replicas > 0); err != nil {
				return err
			}
		}
		b.division = s.Division
		for i := range b.Partitions(StreamTasks).Number() {
			if err := b.ensureConsumer(ctx, js, i, cmp.Or(s.AckWait, defaultAckWait)); err != nil {
				return err
			}
		}
		return b.updateLanes(ctx, js, cmp.Or(s.AckWait, defaultAckWait))
	})
}

func checkServer(ctx context.Context, nc *nats.Conn, js jetstream.JetStream) error {
	info, err := js.AccountInfo(ctx)
	if err != nil {
		return fmt.Errorf("ask NATS for its abilities: %w (is JetStream enabled?)", err)
	}
	if info.API.Level < minLevel {
		return fmt.Errorf("the NATS server is too old: it is %[2]s and must be %[1]s or newer", minVersion, nc.ConnectedServerVersion())
	}
	return nil
}

// base has what the streams have in common.
func (s Streams) base() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: cmp.Or(s.Replicas, 1),
		Duplicates: duplicateWindow, AllowDirect: true, MaxConsumers: maxConsumers,
		MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: -1, MaxMsgSize: -1,
	}
}

// runs is the stream of the logs, undivided.
func (s Streams) runs() jetstream.StreamConfig {
	c := s.base()
	c.Name, c.Description = StreamRuns, "The logs of runs."
	c.Subjects = []string{"runs.*.*.log"}
	c.DenyDelete = true
	return c
}

// events is the stream of the events, undivided.
func (s Streams) events() jetstream.StreamConfig {
	c := s.base()
	c.Name, c.Description = StreamEvents, "What the world sees of runs."
	c.Subjects = []string{"events.*.*.*"}
	c.MaxAge = cmp.Or(s.EventMaxAge, 14*day)
	c.MaxConsumers = maxWatchers
	return c
}

// divisible are the streams that can be several, undivided.
func (s Streams) divisible() []jetstream.StreamConfig {
	return []jetstream.StreamConfig{s.runs(), s.events(), s.tasks()}
}

func (s Streams) configs() []jetstream.StreamConfig {
	base := s.base()
	blobs, dead, agents := base, base, base

	blobs.Name, blobs.Description = StreamBlobs, "Payloads too large for a record."
	blobs.Subjects = []string{"blobs.>"}

	dead.Name, dead.Description = StreamDead, "Tasks that cannot be worked."
	dead.Subjects = []string{"dead.>"}
	dead.MaxAge = cmp.Or(s.DeadMaxAge, 30*day)

	agents.Name, agents.Description = StreamAgents, "Agents by name, every revision."
	agents.Subjects = []string{"$KV." + BucketAgents + ".>"}
	agents.MaxMsgsPerSubject = agentHistory
	agents.DenyDelete, agents.AllowRollup, agents.Discard = true, true, jetstream.DiscardNew

	sessions := base
	sessions.Name, sessions.Description = StreamSessions, "The order of the runs of each session."
	sessions.Subjects = []string{"$KV." + BucketSessions + ".>"}
	sessions.MaxMsgsPerSubject = 1
	sessions.DenyDelete, sessions.AllowRollup, sessions.Discard = true, true, jetstream.DiscardNew

	prompts := agents
	prompts.Name, prompts.Description = StreamPrompts, "Prompts by id, every version."
	prompts.Subjects = []string{"$KV." + BucketPrompts + ".>"}

	quotas := agents
	quotas.Name, quotas.Description = StreamQuotas, "Quotas of tenants, agents and providers."
	quotas.Subjects = []string{"$KV." + BucketQuotas + ".>"}

	rest := []jetstream.StreamConfig{blobs, dead, agents, prompts, sessions, quotas, batches(base), schedules(base), webhooks(base), spend(base), rates(base), keys(quotas), lines(base), logs(base, s), intake(base, s.Division[StreamTasks] > 1), auditStore(base), roster(base), files(base), keyring(base), open(base)}
	return slices.Concat(divide(s.tasks(), s.Division[StreamTasks]), divide(s.runs(), s.Division[StreamRuns]), divide(s.events(), s.Division[StreamEvents]), rest)
}

// ensureStream creates a stream or checks the one that exists.
func ensureStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig, replicas bool) error {
	stream, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another dispatcher was faster
			stream, err = js.Stream(ctx, want.Name)
		}
	}
	if noSpace(err) {
		err = fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	if err != nil {
		return fmt.Errorf("set up stream %s: %w", want.Name, err)
	}
	has := stream.CachedInfo().Config
	if want.Name == streamAudit { // its settings are the auditor's
		return nil
	}
	if isTasks(want.Name) {
		if has, err = updateTasks(ctx, js, want, has); err != nil {
			return fmt.Errorf("update stream %s: %w", want.Name, err)
		}
		want.MaxConsumers = has.MaxConsumers // an operator may have given room to more lanes
	}
	if want.Name == StreamIntake {
		if has, err = updateIntake(ctx, js, want, has); err != nil {
			return fmt.Errorf("update stream %s: %w", want.Name, err)
		}
	}
	return checkStream(want, has, replicas)
}

// updateTasks gives TASKS the hints and the room for lanes that it did not have in earlier versions.
func updateTasks(ctx context.Context, js jetstream.JetStream, want, has jetstream.StreamConfig) (jetstream.StreamConfig, error) {
	if reflect.DeepEqual(has.RePublish, want.RePublish) && has.MaxConsumers >= want.MaxConsumers {
		return has, nil
	}
	has.RePublish, has.MaxConsumers = want.RePublish, max(has.MaxConsumers, want.MaxConsumers)
	stream, err := js.UpdateStream(ctx, has)
	if err != nil {
		return has, err
	}
	return stream.CachedInfo().Config, nil
}

// updateIntake gives INTAKE the subjects that the queue does not take, or takes them away, when the division of the queue has changed.
func updateIntake(ctx context.Context, js jetstream.JetStream, want, has jetstream.StreamConfig) (jetstream.StreamConfig, error) {
	if sorted(has.Subjects) == sorted(want.Subjects) || !ownIntake(has) {
		return has, nil
	}
	has.Subjects = want.Subjects
	stream, err := js.UpdateStream(ctx, has)
	if err != nil {
		return has, err
	}
	return stream.CachedInfo().Config, nil
}

// ownIntake reports whether INTAKE has the subjects that it has beside an undivided queue, or beside a divided one.
func ownIntake(has jetstream.StreamConfig) bool {
	none := jetstream.StreamConfig{}
	return slices.Contains([]string{sorted(intake(none, false).Subjects), sorted(intake(none, true).Subjects)}, sorted(has.Subjects))
}

// checkStream compares the settings that matter. Others, such as a size limit, are the operator's.
func checkStream(want, has jetstream.StreamConfig, replicas bool) error {
	settings := []struct {
		name      string
		want, has any
	}{
		{"subjects", sorted(want.Subjects), sorted(has.Subjects)},
		{"retention", want.Retention, has.Retention},
		{"storage", want.Storage, has.Storage},
		{"discard", want.Discard, has.Discard},
		{"subject_transform", transform(want), transform(has)},
		{"allow_msg_schedules", want.AllowMsgSchedules, has.AllowMsgSchedules},
		{"allow_msg_ttl", want.AllowMsgTTL, has.AllowMsgTTL},
		{"allow_direct", want.AllowDirect, has.AllowDirect},
		{"deny_delete", want.DenyDelete, has.DenyDelete},
		{"deny_purge", want.DenyPurge, has.DenyPurge},
		{"max_age", want.MaxAge, has.MaxAge},
		{"max_msgs_per_subject", want.MaxMsgsPerSubject, has.MaxMsgsPerSubject},
		{"max_consumers", want.MaxConsumers, has.MaxConsumers},
		{"duplicate_window", want.Duplicates, has.Duplicates},
		{"persist_mode", want.PersistMode, has.PersistMode},
		{"no_ack", want.NoAck, has.NoAck},
		{"allow_msg_counter", want.AllowMsgCounter, has.AllowMsgCounter},
	}
	if replicas {
		settings = append(settings, struct {
			name      string
			want, has any
		}{"num_replicas", want.Replicas, has.Replicas})
	}
	if want.Metadata[partitionsKey] != "" {
		settings = append(settings, struct {
			name      string
			want, has any
		}{partitionsKey, want.Metadata[partitionsKey], has.Metadata[partitionsKey]}, struct {
			name      string
			want, has any
		}{"republish", want.RePublish, has.RePublish})
	}
	if want.Name == StreamIntake { // what it is there for
		settings = append(settings, struct {
			name      string
			want, has any
		}{"allow_rollup_hdrs", want.AllowRollup, has.AllowRollup})
	}
	for _, s := range settings {
		if !reflect.DeepEqual(s.want, s.has) {
			return fmt.Errorf("stream %s: %s is %v, but must be %v: change it with `nats stream edit %s`, or, "+
				"if it may not be changed, move the stream away and start again", want.Name, s.name, s.has, s.want, want.Name)
		}
	}
	return nil
}

func sorted(s []string) string { return strings.Join(slices.Sorted(slices.Values(s)), " ") }

func transform(c jetstream.StreamConfig) string {
	if c.SubjectTransform == nil {
		return ""
	}
	return c.SubjectTransform.Source + " to " + c.SubjectTransform.Destination
}

// ensureConsumer creates the consumer of wake-ups, or checks the one that exists. In earlier versions it had all tasks.
func (b *Bus) ensureConsumer(ctx context.Context, js jetstream.JetStream, partition int, ackWait time.Duration) error {
	tasks := b.Partitions(StreamTasks)
	stream := tasks.Name(partition)
	want := LaneConfig(queue.WakeLane().In(partition), tasks.Number(), ackWait)
	consumer, err := js.Consumer(ctx, stream, ConsumerWorkers)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		consumer, err = js.CreateConsumer(ctx, stream, want)
		if errors.Is(err, jetstream.ErrConsumerExists) { // another client was faster
			consumer, err = js.Consumer(ctx, stream, ConsumerWorkers)
		}
	}
	if err != nil {
		return fmt.Errorf("set up consumer %s: %w", ConsumerWorkers, err)
	}
	has := consumer.CachedInfo().Config
	old := sorted(has.FilterSubjects) == "lanes.> tasks.>"
	if old {
		has.FilterSubjects, has.Description = want.FilterSubjects, want.Description
	}
	if err := checkConsumer(stream, want, has); err != nil {
		return err
	}
	if !old && has.AckWait == want.AckWait && has.MaxAckPending == want.MaxAckPending {
		return nil
	}
	has.AckWait, has.MaxAckPending = want.AckWait, want.MaxAckPending
	if _, err := js.UpdateConsumer(ctx, stream, has); err != nil {
		return fmt.Errorf("update consumer %s: %w", ConsumerWorkers, err)
	}
	return nil
}

// updateLanes gives all lanes the ack wait.
func (b *Bus) updateLanes(ctx context.Context, js jetstream.JetStream, ackWait time.Duration) error {
	tasks := b.Partitions(StreamTasks)
	lanes, err := b.Lanes(ctx)
	if err != nil {
		return err
	}
	for _, s := range lanes {
		if s.AckWait == ackWait || s.Lane.Wakes() {
			continue
		}
		_, err := js.UpdateConsumer(ctx, tasks.Name(s.Lane.Partition), LaneConfig(s.Lane, tasks.Number(), ackWait))
		if err != nil && !errors.Is(err, jetstream.ErrConsumerDoesNotExist) && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return fmt.Errorf("update lane %s: %w", s.Lane, err)
		}
	}
	return nil
}

func checkConsumer(stream string, want, has jetstream.ConsumerConfig) error {
	for _, s := range []struct {
		name      string
		want, has any
	}{
		{"filter_subjects", sorted(want.FilterSubjects), sorted(has.FilterSubjects)},
		{"deliver_subject", want.DeliverSubject, has.DeliverSubject},
		{"ack_policy", want.AckPolicy, has.AckPolicy},
		{"max_deliver", want.MaxDeliver, has.MaxDeliver},
		{"backoff", len(want.BackOff), len(has.BackOff)},
	} {
		if !reflect.DeepEqual(s.want, s.has) {
			return fmt.Errorf("consumer %s of stream %s: %s is %v, but must be %v: remove it with `nats consumer rm %s %s`, "+
				"and it is made again", ConsumerWorkers, stream, s.name, s.has, s.want, stream, ConsumerWorkers)
		}
	}
	return nil
}
