// Package audit keeps what has happened in a fleet where nobody can change it without being noticed.
//
// A folder holds one chain of entries for each tenant and one chain of signed heads. Every entry names the hash of the
// one before it, and every head the newest entry of each chain: whoever changes, removes, adds or moves an entry that a
// head covers needs the secret key. [Verify] tells, offline, whether somebody did, and where.
//
//	DIR/heads/00000000000000000001.jsonl          signed heads, gaps, starts of the auditor
//	DIR/tenants/acme/00000000000000000001.jsonl   entries of the tenant acme
//
// A [Store] writes. What it adds is there with the head of the same [Store.Commit], or not at all: a process that is
// killed between loses what came after the last head, and reads it from the stream again, after [Store.Position]. So
// each message of the stream is in a chain once, whatever was killed when.
//
// What it does not do: whoever can write the folder can cut it back to an older head, together with all chains. Keep
// heads elsewhere, which Verify prints, and hand them to it.
package audit
