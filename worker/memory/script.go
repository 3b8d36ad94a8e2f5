package memory

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Fields of a run's state, a hash.
const (
	fieldSeq   = "seq"
	fieldEntry = "entry"
	fieldData  = "data"
)

// sequence is decimal with leading zeros, so that the script can compare texts: a Lua number is exact to 2^53 only.
func sequence(n uint64) string { return fmt.Sprintf("%020d", n) }

var saveScript = redis.NewScript(`
local stored = redis.call('HGET', KEYS[1], 'seq')
if stored and stored >= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'seq', ARGV[1], 'entry', ARGV[2], 'data', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1`)

var deleteScript = redis.NewScript(`return redis.call('DEL', KEYS[1])`)

// runScripts runs the commands in one pipeline by digest. The changes whose scripts a server does not know (it is new,
// or was flushed) are sent whole and by source in a second one, so that a removal stays ahead of its snapshot.
// It returns an error or nil for each command.
func runScripts(ctx context.Context, rdb redis.UniversalClient, commands []command) []error {
	pipe := rdb.Pipeline()
	for i, c := range commands {
		commands[i].reply = c.script.EvalSha(ctx, pipe, c.keys, c.args...)
	}
	_, _ = pipe.Exec(ctx) // the first of the replies' errors; unknown looks at all of them
	again := unknown(commands)
	if len(again) > 0 {
		pipe = rdb.Pipeline()
		for i, c := range commands {
			if again[c.change] {
				commands[i].reply = c.script.Eval(ctx, pipe, c.keys, c.args...)
			}
		}
		_, _ = pipe.Exec(ctx)
	}
	errs := make([]error, len(commands))
	for i, c := range commands {
		errs[i] = c.reply.Err()
	}
	return errs
}

// unknown are the changes with a command whose script the server does not know.
func unknown(commands []command) map[*change]bool {
	out := map[*change]bool{}
	for _, c := range commands {
		if redis.HasErrorPrefix(c.reply.Err(), "NOSCRIPT") {
			out[c.change] = true
		}
	}
	return out
}
