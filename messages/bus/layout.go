package bus

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/logentry"
)

// The streams and buckets of the roles. Setup makes all of them, so their settings are here and not with the roles.
const (
	// StreamBatches holds the heads, lines and outcomes of batches.
	StreamBatches = "BATCHES"
	// StreamWebhooks holds the webhooks that are to be delivered.
	StreamWebhooks = "WEBHOOKS"
	// StreamSpend counts what tenants spend, in nano US dollars: spend.<tenant>.<yyyymm>.<dd>.
	StreamSpend = "SPEND"
	// StreamRates counts the tasks of tenants by minute: rates.<tenant>.<submits|starts>.<minute>. It counts tool calls by the
	// rates of policies: rates.<key>.calls.<seconds of a window>-<number of the window>.
	StreamRates = "RATES"
	// StreamSemaphores has the holders of each semaphore, and a message for each run that waits for a permit, in their order.
	StreamSemaphores = "LINES"
	// StreamLogs holds what processes log about runs.
	StreamLogs = "LOGS"
	// StreamIntake takes the tasks that programs of tenants publish, until a dispatcher has put them into TASKS. It obeys no
	// header by which a message removes, delays or schedules others, as TASKS must for its schedules.
	StreamIntake = "INTAKE"
	// StreamRoster keeps the newest announcement of each worker for some minutes, so that a worker that starts knows which
	// ones died lately.
	StreamRoster = "ROSTER"
	// StreamFiles has the files of runs: contents by tenant and hash, and what refers to them.
	StreamFiles = "FILES"
	// StreamOpen has the runs that have not ended, as of a position in RUNS. It can be lost: it is made again from RUNS.
	StreamOpen = "OPEN"

	// BucketSchedules has the schedules, as <tenant>.<name>, and what became of each, as state.<tenant>.<name>.
	BucketSchedules = "SCHEDULES"
	// BucketKeys has the hashes of API keys.
	BucketKeys = "KEYS"
	// BucketKeyring has the data keyset of each tenant, encrypted with the master keyset, or a tombstone. A message of an old revision
	// is erased after a newer one was stored, so its history is there for that moment alone.
	BucketKeyring = "KEYRING"
	// BucketAudit is the object store that the auditor copies the audit to. It is made here and not by the auditor: a user who
	// may make a stream may have it republish what he stores anywhere, or source what others have.
	BucketAudit = "AUDIT"

	StreamSchedules = "KV_" + BucketSchedules
	StreamKeys      = "KV_" + BucketKeys
	StreamKeyring   = "KV_" + BucketKeyring
	streamAudit     = "OBJ_" + BucketAudit
)

// Prefixes of subjects.
const (
	HoldersPrefix = "lines.places."
	WaitPrefix    = "lines.wait."
	OpenPrefix    = "open."
	tasksPrefix   = "tasks."                     // then priority, tenant, run
	IntakePrefix  = "intake."                    // then as the subject of a task: priority, tenant, run
	KeyringPrefix = "$KV." + BucketKeyring + "." // then the tenant
)

// The durable consumers that dispatchers share.
const (
	// ConsumerMetrics is that of EVENTS by which all dispatchers together count each event in one of them.
	ConsumerMetrics = "metrics"

	ConsumerTraces   = "traces"
	ConsumerEnds     = "ends"
	ConsumerWebhooks = "webhooks"
	ConsumerIntake   = "intake"
)

// tenantHashes is how many values the token of a lane has that is a hash of the tenant.
const tenantHashes = 16

// How long the streams keep what they hold.
const (
	batchMaxAge    = 30 * day // after the head of a batch last changed: longer than any batch may run
	webhooksMaxAge = 7 * day  // longer than any webhook is tried
	spendMaxAge    = 400 * day
	ratesMaxAge    = 2 * time.Hour // after the last task of the minute: tasks may have waited in the queue
	RosterMaxAge   = 5 * time.Minute
	openMaxAge     = 24 * time.Hour // after the last sweep, and of what an interrupted one has left

	keyringHistory = 8 // revisions of a keyset that may wait for being erased

	defaultLogsMaxAge = 7 * day

	// SpendWindow is how long the stream knows by its id what was published. What may be published again later than that has
	// been stored: the ticket of a run that ended or parked is acked after it.
	SpendWindow = 10 * time.Minute
)

// DefaultLogsMaxBytes is reserved for LOGS on the server's disk. An operator may change it at any time. The oldest entries
// go first.
const DefaultLogsMaxBytes = 256 << 20

// batches is the stream. A subject holds its newest message alone: a head is replaced, a line and an outcome are
// stored once.
func batches(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Name, c.Description = StreamBatches, "Batches of tasks: heads, lines and outcomes."
	c.Subjects = []string{"batches.*.*.head", "batches.*.*.line.*", "batches.*.*.done.*"}
	c.MaxMsgsPerSubject, c.MaxAge = 1, batchMaxAge
	return c
}

// schedules is the bucket.
func schedules(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Name, c.Description = StreamSchedules, "Schedules of tenants, every revision."
	c.Subjects = []string{"$KV." + BucketSchedules + ".>"}
	c.MaxMsgsPerSubject = agentHistory
	c.DenyDelete, c.AllowRollup, c.Discard = true, true, jetstream.DiscardNew
	return c
}

func webhooks(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Name, c.Description = StreamWebhooks, "Webhooks that are to be delivered."
	c.Subjects = []string{"webhooks.*.*.*"}
	c.Retention, c.MaxAge = jetstream.WorkQueuePolicy, webhooksMaxAge
	return c
}

// spend is the stream. One message of each subject holds the sum.
func spend(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Name, c.Description = StreamSpend, "What model calls cost, by tenant and day."
	c.Subjects = []string{"spend.*.*.*"}
	c.AllowMsgCounter, c.MaxMsgsPerSubject, c.MaxAge, c.Duplicates = true, 1, spendMaxAge, SpendWindow
	return c
}

// rates is the stream. One message of each subject holds the count.
func rates(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Name, c.Description = StreamRates, "How many tasks of tenants were submitted and begun in each minute."
	c.Subjects = []string{"rates.*.*.*"}
	c.AllowMsgCounter, c.MaxMsgsPerSubject, c.MaxAge = true, 1, ratesMaxAge
	return c
}

// keys is the stream of the bucket, made like that of another bucket.
func keys(like jetstream.StreamConfig) jetstream.StreamConfig {
	like.Name, like.Description = StreamKeys, "API keys of HTTP, by id: their hashes."
	like.Subjects = []string{"$KV." + BucketKeys + ".>"}
	return like
}

// keyring is the stream of the bucket. It lets messages be removed: a destroyed keyset is overwritten on disk.
func keyring(base jetstream.StreamConfig) jetstream.StreamConfig {
	base.Name, base.Description = StreamKeyring, "Data keysets of tenants, encrypted with the master keyset."
	base.Subjects = []string{KeyringPrefix + "*"}
	base.MaxMsgsPerSubject = keyringHistory
	base.Discard, base.AllowDirect = jetstream.DiscardNew, false
	return base
}

func lines(base jetstream.StreamConfig) jetstream.StreamConfig {
	base.Name, base.Description = StreamSemaphores, "Holders of semaphores, and the runs that wait for a permit."
	base.Subjects = []string{HoldersPrefix + ">", WaitPrefix + ">"}
	base.MaxMsgsPerSubject = 1
	base.AllowMsgTTL = true
	return base
}

func open(base jetstream.StreamConfig) jetstream.StreamConfig {
	base.Name, base.Description = StreamOpen, "Runs that have not ended, for sweeps."
	base.Subjects = []string{OpenPrefix + ">"}
	base.MaxMsgsPerSubject, base.MaxAge = 1, openMaxAge
	return base
}

// logs is the stream. What is stored there may be lost, so no publisher waits for it, and it need not be synced to
// disk at once.
func logs(c jetstream.StreamConfig, s Streams) jetstream.StreamConfig {
	c.Name, c.Description = StreamLogs, "What processes log about runs."
	c.Subjects = []string{"logs.*.*"}
	c.MaxMsgsPerSubject = logentry.MaxLogEntries
	c.MaxAge = cmp.Or(s.LogsMaxAge, defaultLogsMaxAge)
	c.MaxBytes = cmp.Or(s.LogsMaxBytes, DefaultLogsMaxBytes)
	c.MaxConsumers = maxWatchers
	return c
}

// tasks is the queue, undivided.
func (s Streams) tasks() jetstream.StreamConfig {
	c := s.base()
	c.Name, c.Description = StreamTasks, "Tasks, wake-ups and schedules."
	c.Subjects = []string{tasksPrefix + ">", "sched.>"}
	c.Retention = jetstream.WorkQueuePolicy
	c.SubjectTransform = &jetstream.SubjectTransformConfig{
		Source:      "tasks.*.*.*",
		Destination: "lanes.{{wildcard(1)}}.{{partition(" + strconv.Itoa(tenantHashes) + ",2)}}.{{wildcard(2)}}.{{wildcard(3)}}",
	}
	c.AllowMsgSchedules, c.AllowMsgTTL, c.AllowRollup = true, true, true
	c.RePublish, c.MaxConsumers = republish(), MaxLanes
	return c
}

// divideTasks makes n partitions of the queue. A stream has one transform, and schedules are in it too, so the publisher names the lane and
// the transform takes away only what names the partition. What is no task's subject, and came by INTAKE, stays under tasks, as in the whole queue.
func divideTasks(c jetstream.StreamConfig, n int) []jetstream.StreamConfig {
	out := make([]jetstream.StreamConfig, n)
	for i := range out {
		p := c
		p.Name = PartitionName(c.Name, i, n)
		p.Description = fmt.Sprintf("%s Part %d of %d.", c.Description, i, n)
		p.Subjects = []string{PartitionSubject("lanes.*.*.*.*", i, n), PartitionSubject(tasksPrefix+">", i, n), PartitionSubject("sched.>", i, n)}
		p.SubjectTransform = &jetstream.SubjectTransformConfig{Source: PartitionSubject(">", i, n), Destination: ">"}
		p.Metadata = map[string]string{partitionsKey: strconv.Itoa(n)}
		out[i] = p
	}
	return out
}

// isTasks reports whether a stream is the queue, or a partition of it.
func isTasks(stream string) bool {
	return stream == StreamTasks || strings.HasPrefix(stream, StreamTasks+"_")
}

// inLane is where the transform of TASKS stores what is published on a subject. In a partition the publisher says so.
func inLane(subject string) string {
	t := strings.Split(subject, ".")
	if len(t) != 4 || t[0]+"." != tasksPrefix {
		return subject
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(t[2])) // no hash returns an error
	return "lanes." + t[1] + "." + strconv.Itoa(int(h.Sum32()%tenantHashes)) + "." + t[2] + "." + t[3]
}

// AsStored is the subject under which a stream stores what is published on one: without what names the partition. The transform leaves that when
// another token is a wildcard.
func AsStored(subject string) string {
	if t := strings.SplitN(subject, ".", 4); len(t) == 4 && t[0]+"." == partitionPrefix {
		return t[3]
	}
	return subject
}

// intake is the stream. No partition of a divided queue takes what is published on tasks.…: then this stream does.
func intake(base jetstream.StreamConfig, divided bool) jetstream.StreamConfig {
	base.Name, base.Description = StreamIntake, "Tasks that tenants publish, on their way to the queue."
	for _, p := range []messages.Priority{messages.PriorityHigh, messages.PriorityNormal, messages.PriorityLow} {
		base.Subjects = append(base.Subjects, IntakePrefix+string(p)+".*.*")
		if divided {
			base.Subjects = append(base.Subjects, tasksPrefix+string(p)+".*.*")
		}
	}
	base.Retention = jetstream.WorkQueuePolicy
	return base
}

// TaskOfIntake is the subject of the task that INTAKE has under one.
func TaskOfIntake(subject string) string {
	if rest, ok := strings.CutPrefix(subject, IntakePrefix); ok {
		return tasksPrefix + rest
	}
	return subject
}

// auditStore is the stream of the object store, as the library would make it but for direct reads: the auditor writes there
// what he likes, and the server shall not publish that in its own name.
func auditStore(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Name, c.Description = streamAudit, "Copies of the audit's segments"
	c.Subjects = []string{"$O." + BucketAudit + ".C.>", "$O." + BucketAudit + ".M.>"}
	c.AllowDirect, c.AllowRollup, c.Discard, c.Compression = false, true, jetstream.DiscardNew, jetstream.S2Compression
	return c
}

// files is the stream of the files of runs. It has no limit of its own: what nothing refers to is removed.
func files(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Name, c.Description = StreamFiles, "The files of runs."
	c.Subjects = []string{"files.*.head.*", "files.*.part.*.*.*", "files.*.ref.*.*", "files.*.named.*"}
	c.MaxMsgsPerSubject = 1
	return c
}

// roster is the stream. A worker announces itself whether or not it exists.
func roster(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Name, c.Description = StreamRoster, "What the workers say of themselves."
	c.Subjects = []string{messages.SeenPrefix + "*"}
	c.MaxMsgsPerSubject, c.MaxAge = 1, RosterMaxAge
	return c
}

// republish has the stream send a hint for each message that it stores. The source is the subject as stored.
func republish() *jetstream.RePublish {
	return &jetstream.RePublish{Source: "lanes.*.*.*.*", Destination: "queued.{{wildcard(1)}}.{{wildcard(3)}}", HeadersOnly: true}
}
