package browser_test

// pages are those of a fleet that was furnished, and what each shows once it is loaded.
func pages() map[string]string {
	return map[string]string{
		"": "Overview", "runs": "found", "runs/r": "Result", "runs/" + longName: "Result", "agents/" + longName: "Revisions", "sessions/" + longName: "Runs", "runs/r?tab=timeline": "in models", "runs/r?tab=files": "haiku.txt", "runs/r?tab=log": "started",
		"runs/r?tab=raw": "Copy JSON", "runs/a": "Approve", "inbox": "Approve", "try": "Agent", "agents": "asker", "agents/asker": "Revisions", "prompts": "greeting", "prompts/greeting": "Render",
		"sessions": "s", "sessions/s": "Runs", "batches": "nightly", "schedules": "nightly", "schedules/nightly": "Next times", "lanes": "The queue is empty", "dead-letters": "unknown",
		"workspaces": "Files", "workers": "Busy", "quotas": "acme", "keys": "Authentication is disabled", "audit": "quotas.put",
		"memory": "Memory", "tools": "write_file", "tools/write_file": "Arguments", "suites": "Evaluation suites", "compare/r/a": "They differ",
	}
}
