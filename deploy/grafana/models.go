package main

import "strconv"

// models shows what models and tools do, and what they cost.
func models() *dashboard {
	d := newDashboard("longshore-models", "Longshore: models and tools", "Calls of models and tools: how many, how fast, what they cost, what fails.")
	const each = "{{provider}} {{model}}"
	d.stats(
		ask("Calls of models", unitNumber, "Within the range.", "", `sum(increase(longshore_model_calls_total[$__range])) or vector(0)`),
		ask("Failed for good", unitNumber, "Within the range.", "", `sum(increase(longshore_model_failures_total[$__range])) or vector(0)`),
		ask("Cost", unitDollars, "Within the range; calls whose price is not known are not in it.", "", `sum(increase(longshore_model_cost_usd_total[$__range])) or vector(0)`),
		ask("Without a price", unitNumber, "Calls within the range.", "", `sum(increase(longshore_model_calls_unpriced_total[$__range])) or vector(0)`),
		ask("Answered by the cache", unitRatio, "Of the calls within the range.", "",
			`(sum(increase(longshore_model_calls_cached_total[$__range])) or vector(0)) / sum(increase(longshore_model_calls_total[$__range]))`),
		ask("Circuits open", unitNumber, "Models that are not called for now.", "", `max(longshore_model_circuits_open)`),
	)

	d.row("Models")
	d.times(
		ask("Calls", unitRate, "", each, `sum by (provider, model) (rate(longshore_model_calls_total[$__rate_interval]))`),
		ask("Cost an hour", unitDollars, "", each, `sum by (provider, model) (rate(longshore_model_cost_usd_total[$__rate_interval])) * 3600`),
		ask("Tokens", unitRate, "", "{{kind}}", `sum by (kind) (rate(longshore_model_tokens_total[$__rate_interval]))`),
	)
	d.times(
		ask("Duration of calls, 95 %", unitSeconds, "", each, quantile(0.95, "longshore_model_call_seconds", "provider, model")),
		ask("Time to the first token, half", unitSeconds, "", each, quantile(0.5, "longshore_time_to_first_token_seconds", "provider, model")),
		ask("Time to the first token, 95 %", unitSeconds, "", each, quantile(0.95, "longshore_time_to_first_token_seconds", "provider, model")),
	)
	d.times(
		ask("Retries", unitRate, "By why the call before failed.", "{{code}}", `sum by (code) (rate(longshore_model_retries_total[$__rate_interval]))`),
		ask("Failures", unitRate, "For good, by code.", "{{code}}", `sum by (code) (rate(longshore_model_failures_total[$__rate_interval]))`),
		ask("How replies end", unitRate, "", "{{stop}}", `sum by (stop) (rate(longshore_model_calls_total[$__rate_interval]))`),
	)
	d.times(
		ask("Waits for limits of providers", unitSeconds, "Seconds waited in a second, by all calls together.", "waiting",
			`sum(rate(longshore_governor_wait_seconds_total[$__rate_interval]))`),
		ask("Calls at the limits", unitRate, "", "admitted", `sum(rate(longshore_governor_admitted_total[$__rate_interval]))`,
			"waited", `sum(rate(longshore_governor_waits_total[$__rate_interval]))`,
			"refused", `sum(rate(longshore_governor_refused_total[$__rate_interval]))`),
		ask("Reply cache", unitRate, "", "hits", `sum(rate(longshore_reply_cache_hits_total[$__rate_interval]))`,
			"misses", `sum(rate(longshore_reply_cache_misses_total[$__rate_interval]))`),
	)

	d.row("Tools, policies, budgets")
	d.times(
		ask("Calls of tools", unitRate, "", "{{tool}}", `topk(10, sum by (tool) (rate(longshore_tool_calls_total[$__rate_interval])))`),
		ask("Failed calls of tools", unitRate, "", "{{tool}} {{outcome}}", `topk(10, sum by (tool, outcome) (rate(longshore_tool_calls_total{outcome!="ok"}[$__rate_interval])))`),
		ask("Duration of tools, 95 %", unitSeconds, "", "{{tool}}", "topk(10, "+quantile(0.95, "longshore_tool_call_seconds", "tool")+")"),
	)
	d.times(
		ask("Blocked by a policy", unitRate, "", "{{of}}", `sum by (of) (rate(longshore_policy_blocks_total[$__rate_interval]))`),
		ask("Close to a budget", unitRate, "", "{{limit}}", `sum by (limit) (rate(longshore_budget_warnings_total[$__rate_interval]))`),
		ask("Hooks that failed", unitRate, "", "failed", `sum(rate(longshore_hook_failures_total[$__rate_interval]))`),
	)
	return d
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
