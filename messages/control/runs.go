package control

import (
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Requests about many runs, answered from an index of the events.
const (
	SubjectRuns     = "longshore.runs"       // RunsRequest -> RunPage
	SubjectRunStats = "longshore.runs_stats" // StatsRequest -> RunStats
	SubjectRunSteps = "longshore.runs_steps" // RunRequest -> StepList
	SubjectIndex    = "longshore.index"      // {} -> IndexStatus

	// SubjectIndexRebuild is heard by every dispatcher: {} -> {}, of the first, once what is made again is gone.
	SubjectIndexRebuild = "longshore.index_rebuild"
)

// IndexRebuildTime bounds how long a dispatcher takes to answer a rebuild.
const IndexRebuildTime = time.Minute

// Bounds of requests about many runs.
const (
	MaxRunPage   = 1000   // runs in a page
	MaxRunsFound = 10_000 // that are counted
	MaxRunGroups = 1000   // of statistics
	maxSearch    = 256    // bytes
	maxRunLabels = 16     // to filter by
)

// RunsRequest asks for runs that have begun, newest first. Zero fields do not restrict.
type RunsRequest struct {
	Tenant   string            `json:"tenant,omitempty"` // default "default"
	Since    *time.Time        `json:"since,omitempty"`  // with an event since then
	Until    *time.Time        `json:"until,omitempty"`  // submitted before
	Statuses []messages.Status `json:"statuses,omitempty"`
	Agent    string            `json:"agent,omitempty"`
	Session  string            `json:"sessionId,omitempty"`
	Parent   string            `json:"parent,omitempty"` // to which this run delegated
	Labels   map[string]string `json:"labels,omitempty"`
	Search   string            `json:"search,omitempty"` // in the input, the error, what was done, and as the id; upper and lower case are the same
	Code     messages.Code     `json:"code,omitempty"`   // why it failed
	ID       string            `json:"id,omitempty"`     // this run alone
	Prefix   string            `json:"prefix,omitempty"` // whose id begins with it
	After    string            `json:"after,omitempty"`  // continue after this run
	Limit    int               `json:"limit,omitempty"`  // default and most 1000
	Count    bool              `json:"count,omitempty"`  // say how many fit
}

// Check fills the defaults, and says which field is wrong.
func (r *RunsRequest) Check() error {
	if r.Tenant == "" {
		r.Tenant = messages.DefaultTenant
	}
	if r.Limit == 0 {
		r.Limit = MaxRunPage
	}
	if r.Limit < 0 || r.Limit > MaxRunPage {
		return &messages.FieldError{Field: "limit", Reason: "must be 1 to 1000"}
	}
	if len(r.Statuses) > 6 {
		return &messages.FieldError{Field: "statuses", Reason: "lists more statuses than exist"}
	}
	if len(r.Labels) > maxRunLabels {
		return &messages.FieldError{Field: "labels", Reason: "are more than 16"}
	}
	if len(r.Search) > maxSearch {
		return &messages.FieldError{Field: "search", Reason: "is longer than 256 bytes"}
	}
	for _, f := range []struct{ name, value string }{{"after", r.After}, {"id", r.ID}, {"prefix", r.Prefix}, {"parent", r.Parent}} {
		if f.value == "" {
			continue
		}
		if err := strict.CheckToken(f.name, f.value); err != nil {
			return err
		}
	}
	return strict.CheckToken("tenant", r.Tenant)
}

// IndexLag says what an answer does not know yet: it is empty of one that knows every event that was stored when it was asked for.
type IndexLag struct {
	Behind uint64     `json:"behind,omitempty"` // events that are not in the index yet
	AsOf   *time.Time `json:"asOf,omitempty"`   // when the newest that is was stored; only with Behind
}

// RunPage is runs that have begun. It may hold fewer than were asked for; Next is empty at the end.
type RunPage struct {
	Runs  []RunSummary `json:"runs"`
	Next  string       `json:"next,omitempty"`
	Found int          `json:"found,omitempty"` // that fit, from After on; MaxRunsFound at most
	More  bool         `json:"more,omitempty"`  // more fit than were counted
	IndexLag
}

// StatsBy is what runs are told apart by.
type StatsBy string

// What runs are told apart by.
const (
	StatsByAgent  StatsBy = "agent"
	StatsByModel  StatsBy = "model"
	StatsByCode   StatsBy = "code" // of failed runs
	StatsByDay    StatsBy = "day"  // of submission, UTC
	StatsByHour   StatsBy = "hour"
	StatsByMinute StatsBy = "minute"
	StatsByStatus StatsBy = "status"
	StatsByTool   StatsBy = "tool" // calls of tools, in place of runs
)

// StatsRequest asks what became of the runs that fit. After, Limit and Count do not count.
type StatsRequest struct {
	RunsRequest
	By StatsBy `json:"by,omitempty"` // default: all together
}

// Check fills the defaults, and says which field is wrong.
func (r *StatsRequest) Check() error {
	switch r.By {
	case "", StatsByAgent, StatsByModel, StatsByCode, StatsByDay, StatsByHour, StatsByMinute, StatsByStatus, StatsByTool:
	default:
		return &messages.FieldError{Field: "by", Reason: "must be agent, model, code, day, hour, minute, status or tool"}
	}
	return r.RunsRequest.Check()
}

// RunStats is what became of runs, the largest groups first; by time, the newest.
type RunStats struct {
	By     StatsBy    `json:"by,omitempty"`
	Total  RunGroup   `json:"total"` // of the groups that are shown; no times
	Groups []RunGroup `json:"groups,omitempty"`
	Tools  []ToolUse  `json:"tools,omitempty"` // by tool: these, and neither total nor groups
	More   bool       `json:"more,omitempty"`  // there are more groups than 1000
	IndexLag
}

// RunGroup is what became of some runs.
type RunGroup struct {
	Key      string                  `json:"key,omitempty"` // empty: not known
	Runs     int                     `json:"runs"`
	Statuses map[messages.Status]int `json:"statuses"`
	// SuccessRate is the completed ones of those that ended and were not cancelled; absent when there are none.
	SuccessRate *float64              `json:"successRate,omitempty"`
	Codes       map[messages.Code]int `json:"codes,omitempty"` // why runs failed
	Steps       int64                 `json:"steps"`
	ModelCalls  int64                 `json:"modelCalls"`
	ToolCalls   int64                 `json:"toolCalls"`
	ToolErrors  int64                 `json:"toolErrors"`
	Tokens      int64                 `json:"tokens"`
	Cost        float64               `json:"cost"`               // US dollars that are known
	Unpriced    int                   `json:"unpriced,omitempty"` // runs with calls of which the price is not known
	P50         *int64                `json:"p50Ms,omitempty"`    // from the first step to the end, of those that ended
	P95         *int64                `json:"p95Ms,omitempty"`
}

// ToolUse is how a tool was called.
type ToolUse struct {
	Tool   string `json:"tool"`
	Calls  int64  `json:"calls"`
	Errors int64  `json:"errors"`
	Millis int64  `json:"millis"` // together
	Runs   int64  `json:"runs"`
}

// StepSummary is a step of a run, as its events tell it.
type StepSummary struct {
	StepID      string              `json:"stepId"`
	Step        int                 `json:"step,omitempty"`
	Status      messages.StepStatus `json:"status,omitempty"` // empty: it has not ended
	Started     *time.Time          `json:"startedAt,omitempty"`
	Ended       *time.Time          `json:"endedAt,omitempty"`
	Model       string              `json:"model,omitempty"`
	ModelCalls  int                 `json:"modelCalls"`
	ModelMillis int64               `json:"modelMs"`
	Tokens      int64               `json:"tokens"`
	Cost        *float64            `json:"cost,omitempty"` // absent: not known
	Tools       map[string]ToolUse  `json:"tools,omitempty"`
	Code        messages.Code       `json:"code,omitempty"`   // of a model call that failed
	Reason      string              `json:"reason,omitempty"` // of that, or why a step of a plan failed or was skipped
}

// StepList is the steps of a run, in order.
type StepList struct {
	Steps []StepSummary `json:"steps"`
	IndexLag
}

// IndexStatus says how the index of a dispatcher is.
type IndexStatus struct {
	Kind     string    `json:"kind"`     // sqlite or postgres
	Leads    bool      `json:"leads"`    // this dispatcher applies the events; of several on one PostgreSQL one does
	Position uint64    `json:"position"` // of the newest event in it
	Last     uint64    `json:"last"`     // of the newest that is stored
	Behind   uint64    `json:"behind"`
	AsOf     time.Time `json:"asOf,omitzero"`
	Runs     int64     `json:"runs"` // rows, of all tenants
	Steps    int64     `json:"steps"`
	Error    string    `json:"error,omitempty"` // the last, while it lasts
}
