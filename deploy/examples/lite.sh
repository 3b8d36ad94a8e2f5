#!/bin/sh
# The three checks of /run-lite: a simple tool call, several steps, an unknown tool. The last one is a 500.
url=${1:-http://127.0.0.1:8420}/run-lite
post() { curl -sS -w '%{http_code}\n' "$url" -H 'Content-Type: application/json' -d "$1"; }

post '{"input":"list the files","includeSteps":true}'
post '{"input":"Write hi into notes.txt, then read it.","includeSteps":true}'
post '{"input":"call an unknown tool"}'
