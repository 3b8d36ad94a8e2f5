package redisstore

import "github.com/redis/go-redis/v9"

// begun begins each script: it removes what has expired, and the values of a scope of which a Redis that was full has evicted a part. A
// value is in values, its revision, its end (Unix time in milliseconds) and its size are in about, its key is in names and, by its end, in
// expiries. What calls returned is in calls, when in times, and how many there are in counters. Calls of which there is no record might
// change later values when they are repeated, so a scope that lost its record of calls loses its values; one that lost its values
// still knows its calls.
const begun = `
local values, about, names, expiries, counters, calls, times = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local function text(n) return string.format('%.0f', n) end
local function look(name)
  local a = redis.call('HGET', about, name)
  if not a then return nil end
  local revision, expires, size = string.match(a, '^(%d+) (%d+) (%d+)$')
  return revision, expires, tonumber(size)
end
local function drop(name)
  local revision, _, size = look(name)
  if not revision then return end
  redis.call('HDEL', values, name)
  redis.call('HDEL', about, name)
  redis.call('ZREM', names, name)
  redis.call('ZREM', expiries, name)
  redis.call('HINCRBY', counters, 'bytes', text(-(#name + size)))
end
local n = redis.call('HLEN', values)
if redis.call('HLEN', about) ~= n or redis.call('ZCARD', names) ~= n or redis.call('ZCARD', expiries) ~= n
  or n > 0 and redis.call('EXISTS', counters) == 0 then
  redis.call('DEL', values, about, names, expiries)
  redis.call('HDEL', counters, 'bytes')
end
local known, has = redis.call('HGET', counters, 'calls'), text(redis.call('HLEN', calls))
if text(redis.call('ZCARD', times)) ~= has or known and known ~= has then
  redis.call('DEL', values, about, names, expiries, calls, times)
  redis.call('HDEL', counters, 'bytes', 'calls')
end
for _, name in ipairs(redis.call('ZRANGEBYSCORE', expiries, '-inf', text(now))) do drop(name) end
`

// changing begins each script that changes something. Its arguments: the key, the revision expected or "", the call or "", how long
// a scope is kept, and a call, and how many calls.
const changing = begun + `
local name, expect, call = ARGV[1], ARGV[2], ARGV[3]
if call ~= '' then
  local done = redis.call('HGET', calls, call)
  if done then return {'ok', done, redis.call('HGET', counters, 'bytes') or '0'} end
end
local revision, _, size = look(name)
if expect ~= '' and expect ~= (revision or '0') then return {'conflict', revision or '0'} end
local function finish(returned)
  if call ~= '' then
    redis.call('HSET', calls, call, returned)
    redis.call('ZADD', times, text(now), call)
    local old = redis.call('ZRANGEBYSCORE', times, '-inf', text(now - tonumber(ARGV[5])))
    local over = redis.call('ZCARD', times) - tonumber(ARGV[6])
    if over > #old then old = redis.call('ZRANGE', times, 0, over - 1) end
    for _, c in ipairs(old) do
      redis.call('HDEL', calls, c)
      redis.call('ZREM', times, c)
    end
    redis.call('HSET', counters, 'calls', text(redis.call('HLEN', calls)))
  end
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[4]) end
  return {'ok', returned, redis.call('HGET', counters, 'bytes') or '0'}
end
`

var (
	getScript = redis.NewScript(begun + `
local revision, expires = look(ARGV[1])
if not revision then return {'none'} end
return {'item', redis.call('HGET', values, ARGV[1]), revision, expires}`)

	setScript = redis.NewScript(changing + `
local value, expires, plain = ARGV[7], text(now + tonumber(ARGV[8])), tonumber(ARGV[12]) -- what is sealed counts as it was
if not revision and redis.call('ZCARD', names) >= tonumber(ARGV[9]) then return {'keys'} end
local used = tonumber(redis.call('HGET', counters, 'bytes') or '0')
local bytes = used + plain - (size or -#name)
if bytes > tonumber(ARGV[10]) and bytes > used then return {'bytes'} end
if bytes - used > tonumber(ARGV[11]) then return {'tenant'} end
local next = redis.call('HINCRBY', counters, 'revision', 1)
if next == 1 then -- the scope is new or lost its counters: it begins after every revision that it may have had, with the microseconds of this era
  next = math.max(next, (tonumber(t[1]) - 1767225600) * 1000000 + tonumber(t[2]))
  redis.call('HSET', counters, 'revision', text(next))
end
next = text(next)
redis.call('HSET', counters, 'bytes', text(bytes))
redis.call('HSET', values, name, value)
redis.call('HSET', about, name, next .. ' ' .. expires .. ' ' .. text(plain))
redis.call('ZADD', names, 0, name)
redis.call('ZADD', expiries, expires, name)
return finish(next)`)

	deleteScript = redis.NewScript(changing + `
if not revision then return finish('0') end
drop(name)
return finish('1')`)

	listScript = redis.NewScript(begun + `
local out = {'list'}
for _, name in ipairs(redis.call('ZRANGEBYLEX', names, ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])) do
  out[#out + 1] = name
  out[#out + 1] = redis.call('HGET', about, name)
end
return out`)
)

// The ledger of a tenant has the bytes of each of its scopes, their sum under the empty name, and when the last value of a scope ends. It is
// another slot of a cluster than the scopes, so it is read before a change and written after it: changes at the same moment may
// exceed the quota by what they add, and a worker that dies in between leaves the scope's number to its next change.
const ledger = `
local bytes, ends = KEYS[1], KEYS[2]
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local function text(n) return string.format('%.0f', n) end
local function put(scope, n)
  local was = tonumber(redis.call('HGET', bytes, scope) or '0')
  redis.call('HINCRBY', bytes, '', text(n - was))
  if n > 0 then redis.call('HSET', bytes, scope, text(n)) return end
  redis.call('HDEL', bytes, scope)
  redis.call('ZREM', ends, scope)
end
for _, scope in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', text(now))) do put(scope, 0) end
`

var (
	totalScript = redis.NewScript(ledger + `return redis.call('HGET', bytes, '') or '0'`)

	// Its arguments: the scope, its bytes, for how long its newest value is kept, and a scope at most.
	settleScript = redis.NewScript(ledger + `
put(ARGV[1], tonumber(ARGV[2]))
if tonumber(ARGV[2]) > 0 then
  local last = tonumber(redis.call('ZSCORE', ends, ARGV[1]) or '0')
  redis.call('ZADD', ends, text(math.max(last, now + tonumber(ARGV[3]))), ARGV[1])
end
redis.call('PEXPIRE', bytes, ARGV[4])
redis.call('PEXPIRE', ends, ARGV[4])
return 'ok'`)
)
