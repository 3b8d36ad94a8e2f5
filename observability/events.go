package observability

import "github.com/prometheus/client_golang/prometheus"

// Events counts what events tell. Any number of goroutines may use it.
//
// No label names a run or a tenant. Labels that others name (agents, models with their provider, tools, reasons)
// show 200 values in the life of the process, and "other" for the rest.
type Events struct {
	agents, models, tools, reasons *openLabel

	seen, started, finished, waiting, resumed, decided *prometheus.CounterVec
	modelCalls, modelFailures, tokens                  *prometheus.CounterVec
	cost, unpriced, cached                             *prometheus.CounterVec
	toolCalls, blocks, warnings, recalls               *prometheus.CounterVec
	malformed, again, cancels, requested, hookFailures prometheus.Counter
	runSeconds, modelCallSeconds, firstTokenSeconds    *prometheus.HistogramVec
	toolSeconds                                        *prometheus.HistogramVec
	runSteps, firstEventSeconds, recallSeconds         prometheus.Histogram
}

// NewEvents adds to the metrics of a process those that are counted from events. Nothing is counted yet.
func NewEvents(m *Metrics) *Events {
	f := factory{m}
	return &Events{
		agents: newOpenLabel(), models: newOpenLabel(), tools: newOpenLabel(), reasons: newOpenLabel(parkReasons()...),

		seen:      f.counters("events_seen_total", "Events that were consumed.", "name"),
		malformed: f.counter("events_malformed_total", "Events that could not be read and are not counted elsewhere."),
		again:     f.counter("events_again_total", "Events that were redelivered because a dispatcher was killed while counting them: they may be counted twice."),

		started:    f.counters("runs_started_total", "Runs that were started.", "agent"),
		finished:   f.counters("runs_finished_total", "Runs that ended; the code says why one failed.", "agent", "status", "code"),
		waiting:    f.counters("runs_waiting_total", "Times that a run started to wait.", "reason"),
		resumed:    f.counters("runs_resumed_total", "Times that a run resumed after a wait.", "reason"),
		requested:  f.counter("approvals_requested_total", "Calls that started to wait for an approval."),
		decided:    f.counters("approvals_decided_total", "Approvals that were decided or have expired.", "decision"),
		cancels:    f.counter("cancels_total", "Requests to cancel a run."),
		blocks:     f.counters("policy_blocks_total", "Tool calls and runs that a policy blocked.", "of"),
		warnings:   f.counters("budget_warnings_total", "Runs that used the soft share of a budget cap.", "limit"),
		runSeconds: f.histograms("run_duration_seconds", "Time from the start of a run to its end.", runBuckets(), "status"),
		runSteps:   f.histogram("run_steps", "Steps of a run that ended.", stepBuckets()),
		firstEventSeconds: f.histogram("time_to_first_event_seconds",
			"Time from the submission of a task to the start of its run.", waitBuckets()),

		modelCalls:       f.counters("model_calls_total", "Model calls that were answered.", "provider", "model", "stop"),
		modelFailures:    f.counters("model_failures_total", "Model calls that failed permanently.", "code"),
		modelCallSeconds: f.histograms("model_call_seconds", "Duration of model calls that were not answered by the reply cache.", modelBuckets(), "provider", "model"),
		firstTokenSeconds: f.histograms("time_to_first_token_seconds",
			"Time from the start of a model call, including retries, to the first text or reasoning of its reply.", tokenBuckets(), "provider", "model"),
		tokens: f.counters("model_tokens_total", "Tokens of model calls; with some providers cache and reasoning tokens are part of the others.",
			"provider", "model", "kind"),
		cost:     f.counters("model_cost_usd_total", "Cost of model calls whose price is known, in US dollars.", "provider", "model"),
		unpriced: f.counters("model_calls_unpriced_total", "Model calls whose price is unknown: they are not in the cost.", "provider", "model"),
		cached:   f.counters("model_calls_cached_total", "Model calls that the reply cache answered.", "provider", "model"),

		toolCalls:     f.counters("tool_calls_total", "Tool calls; the outcome is ok or the error code.", "tool", "outcome"),
		toolSeconds:   f.histograms("tool_call_seconds", "Duration of tool calls.", toolBuckets(), "tool"),
		recalls:       f.counters("recalls_total", "Searches of long-term memory with which runs began, by whether they found something.", "result"),
		recallSeconds: f.histogram("recall_seconds", "Duration of searches of long-term memory with which runs began.", toolBuckets()),
		hookFailures:  f.counter("hook_failures_total", "Calls of hooks that failed."),
	}
}

func runBuckets() []float64 {
	return []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400}
}
func stepBuckets() []float64 { return []float64{1, 2, 3, 5, 8, 13, 21, 34, 55, 100} }
func waitBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
}
func modelBuckets() []float64 { return []float64{.1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300} }
func toolBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
}

func tokenBuckets() []float64 {
	return []float64{.05, .1, .25, .5, 1, 2, 3, 5, 10, 20, 30, 60}
}
