#!/usr/bin/env bash
# Makes data-743354b.tar.gz and data-743354b.json: a data folder of longshore at commit 743354b, and what that program
# said of it. It needs the program of that commit:
#
#   git worktree add old 743354b && (cd old && go build -trimpath -o ../longshore-743354b .)
#   deploy/fleet/testdata/data-743354b.sh "$PWD/longshore-743354b"
set -euo pipefail
longshore=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tmp=$(mktemp -d)
cd "$tmp"
cp "$here/data-743354b.script.yaml" script.yaml

"$longshore" dev --no-worker --data data --addr 127.0.0.1:0 --nats-addr 127.0.0.1:0 --redis-addr 127.0.0.1:0 \
  --ready-file ready.json >dev.log 2>&1 &
dev=$!
trap 'kill $dev ${worker:-} 2>/dev/null || true; wait; rm -rf "$tmp"' EXIT
for ((i = 0; i < 600; i++)); do [ -s ready.json ] && break; sleep 0.1; done
at() { sed "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/" <(tr -d '\n' <ready.json); }
export NATS_URL=$(at nats) REDIS_URL=$(at redis)
api=$(at api)
LONGSHORE_WORKER=mole LONGSHORE_SCRIPT=script.yaml LONGSHORE_WORKSPACES=data/workspaces "$longshore" worker >worker.log 2>&1 &
worker=$!

mate() {
  printf 'apiVersion: longshore.run/v1\nkind: Agent\nmetadata: {name: mate}\nspec: {instructions: %s, tools: [list_files, write_file], approve: {never: [write_file]}}\n' "$1" >mate.yaml
  "$longshore" agents apply -f mate.yaml
}
mate 'Look after the moorings.'
mate 'Look after the moorings and the lights.'
cat >harbourmaster.yaml <<'EOF'
apiVersion: longshore.run/v1
kind: Agent
metadata: {name: harbourmaster}
spec: {tools: [write_file], approve: {always: [write_file], expires: 8784h}}
EOF
"$longshore" agents apply -f harbourmaster.yaml
echo 'Be {tone} about {what}.' | "$longshore" prompts put notice -f - --require tone
cat >tides.yaml <<'EOF'
apiVersion: longshore.run/v1
kind: Schedule
metadata: {name: tides}
spec: {cron: "0 8 1 1 *", timeZone: Europe/Berlin, paused: true, task: {agent: mate, input: Write the tides of the year.}}
EOF
"$longshore" schedules apply -f tides.yaml

"$longshore" submit --id inventory --agent mate --label quay=north 'Take the inventory.'
"$longshore" submit --id talk-1 --session talk 'My berth is seven.'
"$longshore" submit --id bulletin --agent harbourmaster 'Write the bulletin.'
"$longshore" submit --id later --agent mate --at "$(date -u -d '+360 days' +%Y-%m-%dT00:00:00Z)" 'Say hello.'
printf '%s\n' '{"custom_id": "a", "input": "Say hello."}' '{"custom_id": "b", "input": "Greet the fleet."}' >lines.jsonl
"$longshore" batch submit lines.jsonl --id greetings --wait
"$longshore" watch inventory >/dev/null
"$longshore" watch talk-1 >/dev/null
for ((i = 0; i < 600; i++)); do
  [ "$("$longshore" approvals -o json | grep -c bulletin)" != 0 ] && break
  sleep 0.1
done

{
  printf '{"made":"%s"' "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
  for run in inventory talk-1 bulletin; do printf ',"log %s":%s' $run "$(curl -fsS "$api/v1/tasks/$run/log")"; done
  for run in inventory talk-1; do
    printf ',"result %s":%s' $run "$("$longshore" result $run -o json)"
    printf ',"events %s":[%s]' $run "$("$longshore" watch $run -o json | paste -sd,)"
  done
  printf ',"status later":%s' "$("$longshore" status later -o json)"
  printf ',"agent":%s' "$("$longshore" agents history mate -o json)"
  printf ',"prompt":%s' "$("$longshore" prompts get notice -o json)"
  printf ',"schedule":%s' "$("$longshore" schedules show tides -o json)"
  printf ',"batch":%s' "$("$longshore" batch status greetings -o json)"
  printf ',"outcomes":[%s]}\n' "$("$longshore" batch results greetings -o json | paste -sd,)"
} >golden.json

kill -TERM $worker && wait $worker
kill -TERM $dev && wait $dev
trap 'rm -rf "$tmp"' EXIT
tar --sort=name --owner=0 --group=0 --numeric-owner -cf - -C data . | gzip -9n >"$here/data-743354b.tar.gz"
python3 -m json.tool --no-ensure-ascii golden.json >"$here/data-743354b.json"
