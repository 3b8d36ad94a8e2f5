package service

import (
	"maps"

	"github.com/longshore-run/longshore/dispatcher/service/admission"
	"github.com/longshore-run/longshore/dispatcher/service/approvals"
	"github.com/longshore-run/longshore/dispatcher/service/batches"
	"github.com/longshore-run/longshore/dispatcher/service/deadletters"
	"github.com/longshore-run/longshore/dispatcher/service/definitions"
	"github.com/longshore-run/longshore/dispatcher/service/erasure"
	"github.com/longshore-run/longshore/dispatcher/service/feedback"
	"github.com/longshore-run/longshore/dispatcher/service/files"
	"github.com/longshore-run/longshore/dispatcher/service/forks"
	"github.com/longshore-run/longshore/dispatcher/service/history"
	"github.com/longshore-run/longshore/dispatcher/service/keys"
	"github.com/longshore-run/longshore/dispatcher/service/memory"
	"github.com/longshore-run/longshore/dispatcher/service/quotas"
	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/runindex"
	"github.com/longshore-run/longshore/dispatcher/service/runs"
	"github.com/longshore-run/longshore/dispatcher/service/schedules"
	"github.com/longshore-run/longshore/dispatcher/service/sessions"
	"github.com/longshore-run/longshore/dispatcher/service/webhooks"
	"github.com/longshore-run/longshore/dispatcher/service/why"
	"github.com/longshore-run/longshore/dispatcher/service/workers"
	"github.com/longshore-run/longshore/dispatcher/service/workspaces"
	"github.com/longshore-run/longshore/messages/bus/events"
	stored "github.com/longshore-run/longshore/messages/bus/files"
)

// owners answer the requests, each those about one noun. Those that others are built on stand first.
type owners struct {
	endings     *events.Endings
	runs        *runs.Runs
	webhooks    *webhooks.Webhooks
	admission   *admission.Admission
	definitions *definitions.Definitions

	approvals   *approvals.Approvals
	batches     *batches.Batches
	deadletters *deadletters.DeadLetters
	erasure     *erasure.Erasure
	feedback    *feedback.Feedback
	files       *files.Files
	forks       *forks.Forks
	history     *history.History
	keys        *keys.Keys
	memory      *memory.Memory
	quotas      *quotas.Quotas
	runindex    *runindex.RunIndex
	schedules   *schedules.Schedules
	sessions    *sessions.Sessions
	why         *why.Why
	workers     *workers.Workers
	workspaces  *workspaces.Workspaces
}

// newOwners makes the owners, each with the roles that it needs.
func newOwners(cfg *Config, has stores) owners {
	var (
		o          owners
		log        = cfg.Log
		controller = cfg.Controller
		now        = controller.Now
		room       = request.Room(cfg.Conn.MaxPayload)
	)
	o.endings = cfg.Events.NewEndings()
	o.runs = runs.New(runs.Config{
		Endings: o.endings, Events: cfg.Events, Removed: cfg.removed, Queue: has.queue, Controller: controller, Webhooks: has.webhooks, Logs: has.logs,
		Files: has.files, Room: room, Log: log,
	})
	o.webhooks = webhooks.New(webhooks.Config{
		Sender: cfg.Webhooks, Queue: has.webhooks, Letters: has.letters, Runs: o.runs, Now: now, Log: log,
		Tries: cfg.WebhookTries, Wait: cfg.WebhookWait,
	})
	o.admission = admission.New(admission.Config{
		Queue: has.queue, Quotas: cfg.Quotas, Catalog: cfg.Catalog, Workers: has.workers, Runs: o.runs, Webhooks: o.webhooks,
		Files: has.files, Now: now, NewID: controller.NewID, Log: log, MaxInput: cfg.MaxInput,
	})
	o.definitions = definitions.New(definitions.Config{
		Catalog: cfg.Catalog, Events: cfg.Events, Policy: cfg.PromptPolicy, Agents: cfg.AgentPolicy, Redact: cfg.Redact, Log: log,
	})

	o.approvals = approvals.New(approvals.Config{Controller: controller, Semaphores: has.semaphores, Runs: o.runs, Room: room, Redact: cfg.Redact})
	o.batches = batches.New(batches.Config{
		Store: has.batches, Queue: has.queue, Runs: o.runs, Admission: o.admission, Webhooks: o.webhooks, Now: now, Log: log, Every: cfg.Batches,
	})
	o.deadletters = deadletters.New(deadletters.Config{Store: has.letters, Admission: o.admission, Webhooks: o.webhooks})
	o.erasure = erasure.New(erasure.Config{
		Retention: cfg.Retention, Controller: controller, Runs: o.runs, Letters: has.letters, Sessions: has.sessions, Events: cfg.Events,
		Memory: erasable(cfg.Memory), Reach: cfg.Reach,
	})
	o.feedback = feedback.New(feedback.Config{Events: cfg.Events, Runs: o.runs, Log: controller.Log, Queue: has.queue, Now: now, NewID: controller.NewID, Room: room})
	o.files = files.New(files.Config{Store: has.files, Uploads: stored.NewUploads(has.files, cfg.Uploads), Log: controller.Log, Runs: o.runs, Room: room})
	o.forks = forks.New(forks.Config{Controller: controller, Definitions: o.definitions, Runs: o.runs, Files: has.files})
	o.history = history.New(history.Config{Log: controller.Log, Events: cfg.Events, Runs: o.runs, Room: room, Check: cfg.Check, Version: cfg.Version})
	o.keys = keys.New(keys.Config{Catalog: cfg.Catalog, Now: now, Log: log})
	o.memory = memory.New(memory.Config{Store: cfg.Memory, Room: room, Redact: cfg.Redact, Rules: cfg.MemoryRules})
	o.quotas = quotas.New(quotas.Config{Stored: cfg.Quotas, Catalog: cfg.Catalog, Admission: o.admission, Now: now, Log: log})
	o.runindex = runindex.New(runindex.Config{Index: cfg.Index, Queue: has.queue, Runs: o.runs, Room: room, Log: log})
	o.schedules = schedules.New(schedules.Config{
		Store: has.schedules, Catalog: cfg.Catalog, Runs: o.runs, Admission: o.admission, Now: now, NewID: controller.NewID, Log: log,
		Every: cfg.Sweep,
	})
	o.sessions = sessions.New(has.sessions, controller, cfg.Memory)
	o.why = why.New(why.Config{
		Quotas: cfg.Quotas, Controller: controller, Workers: has.workers, Sessions: has.sessions, Semaphores: has.semaphores, Runs: o.runs,
	})
	o.workers = workers.New(workers.Config{Fleet: has.workers, Queue: has.queue, Log: log})
	o.workspaces = workspaces.New(has.files, has.semaphores, controller)
	return o
}

// erasable is long-term memory as erasures see it; nil: there is none.
func erasable(m memory.Store) erasure.Memory {
	if m == nil {
		return nil
	}
	return m
}

// handlers are those of all owners.
func (o *owners) handlers() request.Handlers {
	all := request.Handlers{}
	for _, of := range []interface{ Handlers() request.Handlers }{
		o.runs, o.admission, o.definitions, o.approvals, o.batches, o.deadletters, o.erasure, o.feedback, o.files, o.forks, o.history, o.keys, o.memory, o.quotas,
		o.runindex, o.schedules, o.sessions, o.why, o.workers, o.workspaces,
	} {
		maps.Copy(all, of.Handlers())
	}
	return all
}
