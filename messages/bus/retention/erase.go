package retention

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/strict"
)

// place is a stream and a filter of its subjects.
type place struct{ stream, filter string }

// Known returns the ids of the runs of a tenant of which a log, an event or a dead letter is stored, sorted.
func (rt *Retention) Known(ctx context.Context, tenant string) ([]string, error) {
	if err := strict.CheckToken("tenant", tenant); err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for run, err := range rt.bus.Partitions(bus.StreamRuns).Runs(ctx, "runs."+tenant+".*.log") {
		if err != nil {
			return nil, fmt.Errorf("list the runs of tenant %s in %s: %w", tenant, bus.StreamRuns, err)
		}
		ids[run.Run] = true
	}
	for _, name := range []string{messages.EventRunQueued, messages.EventRunFinished} {
		for run, err := range rt.bus.Partitions(bus.StreamEvents).Runs(ctx, "events."+tenant+".*."+name) {
			if err != nil {
				return nil, fmt.Errorf("list the runs of tenant %s in %s: %w", tenant, bus.StreamEvents, err)
			}
			if run.Run != messages.NoRun {
				ids[run.Run] = true
			}
		}
	}
	for at, token := range map[place]int{
		{bus.StreamDead, "dead." + tenant + ".*.*"}:                               3,
		{bus.StreamDead, "dead." + tenant + ".*.*." + messages.DeadTicket + ".*"}: 3,
		{bus.StreamTasks, "lanes.*.*." + tenant + ".*"}:                           4,
		{bus.StreamTasks, "sched.task." + tenant + ".*.start"}:                    3,
	} {
		for _, stream := range rt.bus.Partitions(at.stream).Names() {
			for subject, err := range rt.bus.Stream(stream).Subjects(ctx, at.filter) {
				if err != nil {
					return nil, fmt.Errorf("list the runs of tenant %s in %s: %w", tenant, stream, err)
				}
				if id := strings.Split(subject, ".")[token]; id != messages.NoRun && strict.ValidToken(id) {
					ids[id] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(ids)), nil
}

// Erase removes all of a run that has ended, what is stored in the clear too: its events, its log entries, its webhooks, its dead letters, its
// line of a batch. The servers overwrite those on their disks. What others have published under its name in partitions that are not its own goes
// too. Its log goes last, so that an erasure that was cut off is found and repeated. Nothing may be erased of a run that has not ended.
func (rt *Retention) Erase(ctx context.Context, run messages.Ref) error {
	if err := run.Check(); err != nil {
		return err
	}
	of := run.Tenant + "."
	places := []place{
		{bus.StreamDead, "dead." + of + "*." + run.Run},
		{bus.StreamDead, "dead." + of + "*." + run.Run + "." + messages.DeadTicket + ".*"},
		{bus.StreamDead, "dead." + of + "webhook.*." + run.Run},
		{bus.StreamWebhooks, "webhooks." + of + run.Run + ".*"},
		{bus.StreamBatches, "batches." + of + "*.line." + run.Run},
		{bus.StreamBatches, "batches." + of + "*.done." + run.Run},
		{bus.StreamLogs, run.LogEntriesSubject()},
	}
	for _, name := range rt.bus.Partitions(bus.StreamEvents).Names() {
		places = append(places, place{name, run.EventFilter()})
	}
	for _, at := range places {
		if err := rt.overwrite(ctx, at); err != nil {
			return err
		}
	}
	for _, at := range []place{
		{bus.StreamTasks, "sched.*." + of + run.Run + ".>"},
		{bus.StreamTasks, run.QueuedFilter()},
		{bus.StreamRuns, run.LogSubject()},
	} {
		parts := rt.bus.Partitions(at.stream)
		for _, name := range parts.Names() {
			if parts.Owns(name, run) {
				continue
			}
			if err := rt.clear(ctx, place{name, at.filter}); err != nil {
				return err
			}
		}
	}
	return rt.Purge(ctx, run)
}

// EraseRest removes what is kept of a tenant besides its runs, each of which must have been erased before: uploads, named workspaces, sessions,
// schedules, batches, webhooks, dead letters, what people said about runs. It leaves what people did, what the tenant may use and has used, and
// its keys.
func (rt *Retention) EraseRest(ctx context.Context, tenant string) error {
	if err := strict.CheckToken("tenant", tenant); err != nil {
		return err
	}
	places := []place{
		{bus.StreamDead, "dead." + tenant + ".>"},
		{bus.StreamWebhooks, "webhooks." + tenant + ".>"},
		{bus.StreamBatches, "batches." + tenant + ".>"},
		{bus.StreamLogs, "logs." + tenant + ".*"},
	}
	for _, name := range rt.bus.Partitions(bus.StreamEvents).Names() {
		places = append(places, place{name, "events." + tenant + ".*." + feedback})
	}
	for _, at := range places {
		if err := rt.overwrite(ctx, at); err != nil {
			return err
		}
	}
	for _, at := range []place{
		{bus.StreamSchedules, "$KV." + bus.BucketSchedules + "." + tenant + ".*"},
		{bus.StreamSchedules, "$KV." + bus.BucketSchedules + ".state." + tenant + ".*"},
		{bus.StreamTasks, "sched.*." + tenant + ".>"},
		{bus.StreamTasks, "lanes.*.*." + tenant + ".*"},
		{bus.StreamSessions, "$KV." + bus.BucketSessions + "." + tenant + ".*"},
		{bus.StreamBlobs, "blobs." + tenant + ".>"},
		{bus.StreamFiles, "files." + tenant + ".>"},
	} {
		for _, stream := range rt.bus.Partitions(at.stream).Names() {
			if err := rt.clear(ctx, place{stream, at.filter}); err != nil {
				return err
			}
		}
	}
	if err := rt.eachAstray(ctx, bus.StreamEvents, "events."+tenant+".*.*", rt.overwrite); err != nil {
		return err
	}
	return rt.eachAstray(ctx, bus.StreamRuns, "runs."+tenant+".*.log", rt.clear) // whose messages cannot be removed one by one
}

// eachAstray does something with each subject of a filter that stands in a partition which is not that of its run. It counts for nothing there, so
// [Retention.Known] does not name such runs.
func (rt *Retention) eachAstray(ctx context.Context, stream, filter string, do func(context.Context, place) error) error {
	parts := rt.bus.Partitions(stream)
	if !parts.Divided() {
		return nil
	}
	for _, name := range parts.Names() {
		var astray []string
		for subject, err := range rt.bus.Stream(name).Subjects(ctx, filter) {
			if err != nil {
				return fmt.Errorf("list what is astray in %s: %w", name, err)
			}
			if !parts.OwnsSubject(name, subject) {
				astray = append(astray, subject)
			}
		}
		for _, subject := range astray {
			if err := do(ctx, place{name, subject}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (rt *Retention) clear(ctx context.Context, at place) error {
	if err := rt.bus.Stream(at.stream).Clear(ctx, at.filter); err != nil {
		return fmt.Errorf("purge %s of %s: %w", at.filter, at.stream, err)
	}
	return nil
}

const feedback = "feedback" // the event that is about a run and stands beside it

// Unsay removes what people have said about runs, which stands beside their events. The function reports whether a message is about one of them.
func (rt *Retention) Unsay(ctx context.Context, tenant string, is func(event []byte) bool) error {
	beside := messages.Ref{Tenant: tenant, Run: messages.NoRun}
	return rt.each(ctx, place{rt.bus.Partitions(bus.StreamEvents).NameOf(beside), beside.EventSubject(feedback)}, is)
}

// overwrite removes the messages of a filter, one by one: their bytes are overwritten on the disks of the servers, which a purge leaves there until
// the space is needed.
func (rt *Retention) overwrite(ctx context.Context, at place) error {
	return rt.each(ctx, at, func([]byte) bool { return true })
}

func (rt *Retention) each(ctx context.Context, at place, is func(data []byte) bool) error {
	s := rt.bus.Stream(at.stream)
	for from := uint64(1); ; {
		m, ok, err := s.Get(ctx, bus.Lookup{Seq: from, Next: at.filter})
		if err == nil && ok && is(m.Data) {
			err = s.Erase(ctx, m.Seq)
		}
		switch {
		case err != nil:
			return fmt.Errorf("erase %s of %s: %w", at.filter, at.stream, err)
		case !ok:
			return nil
		}
		from = m.Seq + 1
	}
}
