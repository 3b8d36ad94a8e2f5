package redisstore

import "github.com/redis/go-redis/v9"

// common begins each script. Of each item there is its text, by its name, which is its collection and its id; about it, its size, its
// place in the order, and when it expires; the place; and if it expires, its name by that time. The usage has items and bytes of
// each collection.
const common = `
local items, about, order, expiries, usage = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local function text(n) return string.format('%.0f', n) end
local function size(name)
  local a = redis.call('HGET', about, name)
  if not a then return nil end
  return tonumber(string.match(a, '^(%d+) ')), string.match(a, '^%d+ (.*)$')
end
local function count(collection, n, bytes)
  if redis.call('HINCRBY', usage, collection .. ' items', text(n)) <= 0 then
    redis.call('HDEL', usage, collection .. ' items', collection .. ' bytes')
  else
    redis.call('HINCRBY', usage, collection .. ' bytes', text(bytes))
  end
end
local function drop(name)
  local bytes, place = size(name)
  if not bytes then return 0 end
  redis.call('HDEL', items, name)
  redis.call('HDEL', about, name)
  redis.call('ZREM', order, place)
  redis.call('ZREM', expiries, name)
  count(string.match(name, '^(%S+) '), -1, -bytes)
  return 1
end
local function sweep(now, most)
  local n = 0
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'LIMIT', 0, most)) do n = n + drop(name) end
  return n
end
`

var (
	// Its arguments: the time, the collection, the limits of items and bytes, how many expired ones make room, and for each item its name, text,
	// size, place, and the time when it expires or "".
	writeScript = redis.NewScript(common + `
local now, collection, maxItems, maxBytes = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local function total()
  local n, bytes = 0, 0
  local all = redis.call('HGETALL', usage)
  for i = 1, #all, 2 do
    if string.match(all[i], ' items$') then n = n + tonumber(all[i + 1]) else bytes = bytes + tonumber(all[i + 1]) end
  end
  return n, bytes
end
local function would()
  local n, bytes = total()
  local wasItems, wasBytes = n, bytes
  for i = 6, #ARGV, 5 do
    local old = size(ARGV[i])
    if old then n = n - 1; bytes = bytes - old end
    n = n + 1
    bytes = bytes + tonumber(ARGV[i + 2])
  end
  local over = maxItems > 0 and n > maxItems and n > wasItems or maxBytes > 0 and bytes > maxBytes and bytes > wasBytes
  return over, wasItems, wasBytes, n, bytes
end
if would() then
  sweep(now, ARGV[5])
  local over, wasItems, wasBytes, n, bytes = would()
  if over then return {'full', text(wasItems), text(wasBytes), text(n), text(bytes)} end
end
for i = 6, #ARGV, 5 do
  local name, bytes, place, expires = ARGV[i], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  drop(name)
  redis.call('HSET', items, name, ARGV[i + 1])
  redis.call('HSET', about, name, bytes .. ' ' .. place)
  redis.call('ZADD', order, 0, place)
  if expires ~= '' then redis.call('ZADD', expiries, expires, name) end
  count(collection, 1, tonumber(bytes))
end
return {'ok'}`)

	deleteScript = redis.NewScript(common + `
local n = 0
for _, name in ipairs(ARGV) do n = n + drop(name) end
return n`)

	sweepScript = redis.NewScript(common + `return sweep(ARGV[1], ARGV[2])`)
)
