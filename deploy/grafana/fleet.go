package main

// fleet shows whether a fleet does its work. Counters of events are summed up over dispatchers, which share them; what
// each dispatcher sees of the fleet is the maximum.
func fleet() *dashboard {
	d := newDashboard("longshore-fleet", "Longshore: fleet", "Whether the fleet does its work: runs, queue, workers, and what goes wrong.")
	d.stats(
		ask("Workers", unitNumber, "That answer.", "", `max(longshore_fleet_workers)`),
		ask("Slots busy", unitRatio, "Of all slots.", "", `max(longshore_fleet_slots_busy) / (max(longshore_fleet_slots) > 0)`),
		ask("Queued", unitNumber, "Messages that no worker was given.", "", `sum(max by (priority, tenant) (longshore_queue_tasks)) or vector(0)`),
		ask("Oldest in the queue", unitSeconds, "", "", `max(longshore_queue_oldest_seconds) or vector(0)`),
		ask("Runs succeeded", unitRatio, "Of those that completed or failed within the range.", "",
			`1 - (sum(increase(longshore_runs_finished_total{status="failed"}[$__range])) or vector(0)) / sum(increase(longshore_runs_finished_total{status=~"completed|failed"}[$__range]))`),
		ask("Waiting for approval", unitNumber, "Runs.", "", `max(longshore_runs_parked{reason="approval"})`),
		ask("Dead letters", unitNumber, "That are kept.", "", `sum(max by (of) (longshore_dead_letters))`),
		ask("Cost", unitDollars, "Of calls of models whose price is known, in the last hour.", "", `sum(increase(longshore_model_cost_usd_total[1h])) or vector(0)`),
	)

	d.row("Runs")
	d.times(
		ask("Runs started and ended", unitRate, "", "started", `sum(rate(longshore_runs_started_total[$__rate_interval]))`,
			"{{status}}", `sum by (status) (rate(longshore_runs_finished_total[$__rate_interval]))`),
		ask("Failures by code", unitRate, "", "{{code}}", `sum by (code) (rate(longshore_runs_finished_total{status="failed"}[$__rate_interval]))`),
		ask("Runs that wait", unitNumber, "By what they wait for.", "{{reason}}", `max by (reason) (longshore_runs_parked)`),
	)
	d.times(
		ask("Time to the first event", unitSeconds, "From the submission of a task to the start of its run.",
			"half", quantile(0.5, "longshore_time_to_first_event_seconds", ""), "95 %", quantile(0.95, "longshore_time_to_first_event_seconds", "")),
		ask("Duration of runs", unitSeconds, "", "half", quantile(0.5, "longshore_run_duration_seconds", ""), "95 %", quantile(0.95, "longshore_run_duration_seconds", "")),
		ask("Steps of a run", unitNumber, "", "half", quantile(0.5, "longshore_run_steps", ""), "95 %", quantile(0.95, "longshore_run_steps", "")),
	)
	d.times(
		ask("Runs ended by agent", unitRate, "", "{{agent}}", `topk(10, sum by (agent) (rate(longshore_runs_finished_total[$__rate_interval])))`),
		ask("Longest wait", unitSeconds, "Of the runs that wait, by what they wait for.", "{{reason}}", `max by (reason) (longshore_runs_parked_oldest_seconds)`),
		ask("Approvals and cancels", unitRate, "", "requested", `sum(rate(longshore_approvals_requested_total[$__rate_interval]))`,
			"{{decision}}", `sum by (decision) (rate(longshore_approvals_decided_total[$__rate_interval]))`,
			"cancels", `sum(rate(longshore_cancels_total[$__rate_interval]))`),
	)

	d.row("Queue and workers")
	d.times(
		ask("Queued by lane", unitNumber, "The ten fullest.", "{{priority}} {{tenant}}", `topk(10, max by (priority, tenant) (longshore_queue_tasks))`),
		ask("Oldest by lane", unitSeconds, "The ten oldest.", "{{priority}} {{tenant}}", `topk(10, max by (priority, tenant) (longshore_queue_oldest_seconds))`),
		ask("Slots", unitNumber, "", "all", `max(longshore_fleet_slots)`, "busy", `max(longshore_fleet_slots_busy)`,
			"workers", `max(longshore_fleet_workers)`, "draining", `max(longshore_fleet_workers_draining)`),
	)
	d.times(
		ask("Claims and hand-backs", unitRate, "", "claims", `sum(rate(longshore_worker_claims_total[$__rate_interval]))`,
			"redeliveries", `sum(rate(longshore_worker_redeliveries_total[$__rate_interval]))`,
			"released", `sum(rate(longshore_worker_released_total[$__rate_interval]))`),
		ask("Crashes and cuts", unitRate, "What the loss of workers costs.", "reclaims", `sum(rate(longshore_worker_reclaims_total[$__rate_interval]))`,
			"fenced", `sum(rate(longshore_worker_fenced_total[$__rate_interval]))`,
			"repeated model calls", `sum(rate(longshore_worker_repeated_model_calls_total[$__rate_interval]))`,
			"repeated tool calls", `sum(rate(longshore_worker_repeated_tool_calls_total[$__rate_interval]))`,
			"poisoned", `sum(rate(longshore_worker_poisoned_total[$__rate_interval]))`),
		ask("Short-term memory", unitRatio, "States found, of those looked for.", "hits",
			`sum(rate(longshore_memory_hits_total[$__rate_interval])) / (sum(rate(longshore_memory_hits_total[$__rate_interval])) + sum(rate(longshore_memory_misses_total[$__rate_interval])))`,
			"up", `min(longshore_memory_up)`),
	)

	d.row("Events, watchers, webhooks")
	d.times(
		ask("Events", unitRate, "Counted, by name.", "{{name}}", `sum by (name) (rate(longshore_events_seen_total[$__rate_interval]))`),
		ask("Lag of consumers", unitSeconds, "Age of the first message that was not taken.", "{{consumer}}", `max by (consumer) (longshore_consumer_lag_seconds)`),
		ask("Watchers", unitNumber, "", "watchers", `sum(longshore_watchers)`, "events behind", `max(longshore_watchers_lag)`,
			"stalls", `sum(increase(longshore_watchers_stalled_total[$__rate_interval]))`),
	)
	d.times(
		ask("Webhooks", unitRate, "", "delivered", `sum(rate(longshore_webhooks_delivered_total[$__rate_interval]))`,
			"failed attempts", `sum(rate(longshore_webhook_failures_total[$__rate_interval]))`,
			"given up", `sum(rate(longshore_webhooks_given_up_total[$__rate_interval]))`),
		ask("What should not be", unitRate, "Each has an alert.", "foreign events", `sum(rate(longshore_foreign_events_total[$__rate_interval]))`,
			"malformed events", `sum(rate(longshore_events_malformed_total[$__rate_interval]))`,
			"ignored decisions", `sum(rate(longshore_ignored_decisions_total[$__rate_interval]))`,
			"ignored revisions", `sum(rate(longshore_ignored_revisions_total[$__rate_interval]))`,
			"denied requests", `sum(rate(longshore_auth_denied_total[$__rate_interval]))`,
			"lanes without room", `sum(rate(longshore_worker_lanes_full_total[$__rate_interval]))`),
		ask("Live text dropped", unitBytes, "Of replies while they were written.", "dropped", `sum(rate(longshore_worker_live_dropped_bytes_total[$__rate_interval]))`),
	)
	return d
}

// quantile of a histogram, by labels.
func quantile(q float64, histogram, by string) string {
	labels := "le"
	if by != "" {
		labels += ", " + by
	}
	return "histogram_quantile(" + number(q) + ", sum by (" + labels + ") (rate(" + histogram + "_bucket[$__rate_interval])))"
}
