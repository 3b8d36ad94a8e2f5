// Package audit keeps a tamper-evident record of what has happened in a fleet.
//
// A folder holds one chain of entries for each tenant and one chain of signed heads. Every entry names the hash of the
// one before it, and every head the newest entry of each chain: to change, remove, add or move an entry that a head covers
// without being noticed takes the secret key. [Verify] finds such changes offline.
//
//	DIR/heads/00000000000000000001.jsonl          signed heads, gaps, starts of the auditor
//	DIR/tenants/acme/00000000000000000001.jsonl   entries of the tenant acme
//
// A [Store] writes. Entries become valid with the head of the same [Store.Commit]: a process that is killed in between drops the
// entries after the last head and reads them from the stream again, from [Store.Position]. So each message of the stream is in a
// chain exactly once.
//
// What it does not do: a process that can write the folder can truncate all chains to an older head. To detect that, keep the
// heads that Verify prints elsewhere and pass them to it.
package audit
