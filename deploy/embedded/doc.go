// Package embedded runs NATS with JetStream and a Redis-compatible store inside the process: for `longshore dev`, for
// our tests and for the tests of people who build on Longshore. Call [Start], connect with [Servers.Conn] or the two
// URLs, and [Servers.Stop] at the end. Tests have it shorter in the package embeddedtest.
//
// NATS is the real server with file storage: what it acknowledged survives Stop and the death of the process, and the
// loss of power up to [Config.SyncInterval]. The store behind RedisURL is NOT Redis but a double of it that holds
// everything in memory only: StopRedis, Stop and a crash empty it, it has no limit on memory, and it is for
// development and tests alone.
//
// Neither server asks for a password or speaks TLS. Both listen on the loopback interface unless the Config says
// otherwise, and neither reports anything to the outside.
package embedded
