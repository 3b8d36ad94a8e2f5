#!/usr/bin/env bash
# Submits a task, follows its events and prints its result, over HTTP.
set -euo pipefail
api=${LONGSHORE_API:-http://127.0.0.1:8420}
id=curl-$$-$RANDOM

# Submit. The same key is the same task, however often it is sent. ?wait= answers with the result when it comes in time.
curl -sS --fail-with-body "$api/v1/tasks?wait=30s" -H "Idempotency-Key: $id" \
	-H 'Content-Type: application/json' -d '{"input":"Greet the harbour."}' >/dev/null

# Follow: what was, then what comes, until the run has ended. Come back with Last-Event-ID after a cut.
curl -sSN --fail-with-body "$api/v1/tasks/$id/events" |
	sed -n -e 's/^id: //p' -e 's/^event: //p' | paste -d ' ' - -

# The result.
curl -sS --fail-with-body "$api/v1/tasks/$id/result" |
	sed -E 's/.*"result":"([^"]*)".*"status":"([^"]*)".*/\2: \1/'
