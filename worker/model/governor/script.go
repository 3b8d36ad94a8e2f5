package governor

import "github.com/redis/go-redis/v9"

// What the scripts share. Times are microseconds, exact in a Lua number. A bucket is a GCRA: one time, at which it will
// be full again. It may run ahead of now by the burst, a tenth of a minute; a cost beyond that needs a full bucket.
// Whatever is stored too far ahead was written with another clock, or by another program, and is clamped.
const shared = `
local minute, burst, ahead = 60000000, 6000000, 180000000
local now = tonumber(ARGV[1])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local function text(n) return string.format('%.0f', n) end
local function number(v) return tonumber(v or 0) or 0 end
local function cost(n, limit)
  if limit == 0 then return 0 end
  return math.ceil(math.min(n, limit) * minute / limit)
end
local function full(key, field) return math.min(number(redis.call('HGET', key, field)), now + ahead) end
`

// admitScript takes the permit of one call, or answers {0, microseconds to wait, why}. {-1, …}: the queue is too long.
//
// Turns are start-time fair queueing by tenant: a call costs the part of a minute's limit that it takes, and is tagged
// with what its tenant has used so far, or with the tag of the last call that was let through, whichever is greater.
// A tenant that waits with the same or a smaller tag is never overtaken. A tenant that stops asking loses its position.
var admitScript = redis.NewScript(shared + `
local pool, leases, own, ownleases, line, seen, tags = unpack(KEYS)
local tenant, lease = ARGV[2], ARGV[3]
local leasefor, tokens, maxline, hold, ttl = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local rpm, tpm, inflight = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local ownrpm, owntpm, owninflight = tonumber(ARGV[12]), tonumber(ARGV[13]), tonumber(ARGV[14])

local function wait(key, field, price)
  if price == 0 then return 0 end
  return full(key, field) - math.max(0, burst - price) - now
end
local function take(key, field, price)
  if price > 0 then redis.call('HSET', key, field, text(math.max(full(key, field), now) + price)) end
end
-- It is unknown when a call ends: ask again soon.
local function busy(key, limit)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', text(now))
  redis.call('ZREMRANGEBYSCORE', key, text(now + 2 * leasefor), '+inf')
  if limit == 0 or redis.call('ZSCORE', key, lease) or redis.call('ZCARD', key) < limit then return 0 end
  return 100000
end
local function leave(who)
  redis.call('ZREM', line, who)
  redis.call('ZREM', seen, who)
end

-- Its own limits hold a tenant back: it does not stand in the way of others.
local ownr, ownt = cost(1, ownrpm), cost(tokens, owntpm)
local delay = math.max(wait(own, 'r', ownr), wait(own, 't', ownt), busy(ownleases, owninflight))
if delay > 0 then
  leave(tenant)
  return {0, delay, 'tenant'}
end

local r, t = cost(1, rpm), cost(tokens, tpm)
local why = 'requests'
delay = wait(pool, 'r', r)
local tokenwait, busywait = wait(pool, 't', t), busy(leases, inflight)
if tokenwait > delay then delay, why = tokenwait, 'tokens' end
if busywait > delay then delay, why = busywait, 'calls' end

local first, firsttag
repeat
  first = redis.call('ZRANGE', line, 0, 0)[1]
  local gone = false
  if first then
    local kept = number(redis.call('ZSCORE', seen, first))
    gone = kept <= now or kept > now + 2 * hold
    if gone then leave(first) end
    firsttag = number(redis.call('ZSCORE', line, first))
  end
until not gone
local last = number(redis.call('HGET', pool, 'v'))
local tag = redis.call('ZSCORE', line, tenant)
tag = tag and number(tag) or math.max(number(redis.call('ZSCORE', tags, tenant)), last)

if delay <= 0 and (not first or first == tenant or tag < firsttag) then
  leave(tenant)
  take(pool, 'r', r)
  take(pool, 't', t)
  take(own, 'r', ownr)
  take(own, 't', ownt)
  last = math.max(last, tag)
  redis.call('HSET', pool, 'v', text(last))
  local turn = math.max(r, t)
  if turn == 0 then turn = 1000000 end
  redis.call('ZADD', tags, text(tag + turn), tenant)
  redis.call('ZREMRANGEBYSCORE', tags, '-inf', text(last))
  redis.call('ZADD', leases, text(now + leasefor), lease)
  if owninflight > 0 then redis.call('ZADD', ownleases, text(now + leasefor), lease) end
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ttl) end
  return {1, 0, ''}
end

if delay <= 0 then why = 'turn' end
if not redis.call('ZSCORE', line, tenant) then
  if redis.call('ZCARD', line) >= maxline then return {-1, math.max(delay, 1000000), 'line'} end
  redis.call('ZADD', line, text(tag), tenant)
end
redis.call('ZADD', seen, text(now + hold), tenant)
redis.call('PEXPIRE', line, ttl)
redis.call('PEXPIRE', seen, ttl)
local rank = number(redis.call('ZRANK', line, tenant))
return {0, math.max(delay, 0) + rank * math.max(r, 50000), why}`)

// settleScript ends a call once: its permit is free, and the difference between the tokens that were taken and
// those that were used is given back or taken, up to two minutes' limit. A second time, or late, it does nothing.
var settleScript = redis.NewScript(shared + `
local pool, leases, own, ownleases = unpack(KEYS)
local lease, taken, used, ttl = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
redis.call('ZREM', ownleases, lease)
if redis.call('ZREM', leases, lease) == 0 then return 0 end
local function settle(key, limit)
  if limit == 0 then return end
  local move = math.ceil(math.min(used, 2 * limit) * minute / limit) - cost(taken, limit)
  if move == 0 then return end
  local at = full(key, 't')
  if move > 0 then at = math.max(at, now) end
  redis.call('HSET', key, 't', text(math.max(at + move, 0)))
  redis.call('PEXPIRE', key, ttl)
end
settle(pool, tonumber(ARGV[6]))
settle(own, tonumber(ARGV[7]))
return 1`)

// renewScript keeps the leases of calls in flight.
var renewScript = redis.NewScript(shared + `
for i = 1, 2 do
  if redis.call('ZSCORE', KEYS[i], ARGV[2]) then
    redis.call('ZADD', KEYS[i], text(now + ARGV[3]), ARGV[2])
    redis.call('PEXPIRE', KEYS[i], ARGV[4])
  end
end
return 1`)

// beatScript says that a worker lives, and counts those that do.
var beatScript = redis.NewScript(shared + `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now))
redis.call('ZREMRANGEBYSCORE', KEYS[1], text(now + 2 * ARGV[3]), '+inf')
redis.call('ZADD', KEYS[1], text(now + ARGV[3]), ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return redis.call('ZCARD', KEYS[1])`)

// leaveScript gives up a tenant's place in the queue. Should another worker wait for the same tenant, it asks again within a
// second, with the same tag.
var leaveScript = redis.NewScript(`
redis.call('ZREM', KEYS[1], ARGV[1])
return redis.call('ZREM', KEYS[2], ARGV[1])`)
