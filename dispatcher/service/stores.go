package service

import (
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/batches"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/bus/logentries"
	"github.com/longshore-run/longshore/messages/bus/roster"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/bus/webhooks"
)

// stores are the roles of the bus that the owners work with, besides those that the process shares with others.
type stores struct {
	queue     *taskqueue.Queue
	batches   *batches.Store
	schedules *schedules.Store
	sessions  *sessions.Store
	logs      *logentries.Store
	files     *files.Store
	workers   *roster.Fleet

	letters    *deadletters.Store
	webhooks   *webhooks.Queue
	semaphores *semaphores.Store
}

func newStores(b *bus.Bus, logs *runlogs.Store, kept *files.Store) stores {
	return stores{
		queue: taskqueue.New(b), batches: batches.New(b), schedules: schedules.New(b), sessions: sessions.New(b, logs), logs: logentries.New(b), files: kept, workers: roster.New(b),
		letters: deadletters.New(b), webhooks: webhooks.New(b), semaphores: semaphores.New(b),
	}
}
