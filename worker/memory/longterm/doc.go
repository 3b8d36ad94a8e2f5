// Package longterm is what agents remember beyond a run: short texts with fields, tags and vectors, kept by tenant and
// collection, that are found again by their fields, their words or their meaning.
//
// A [Store] keeps [Item] values. Write is idempotent by id; Query pages through what passes a [Filter]; Search returns the
// best items for words, a vector or both. The stores are leaves: memstore for tests and embedding, sqlstore for SQLite and
// PostgreSQL, redisstore. [Embedded] gives a store vectors, [Sealed] keeps it from reading texts, [Measured] counts.
//
// Guarantees: no call reads or changes more than one tenant. Every request to a server ends within the store's timeout, whether its
// context does or not; a deletion or a sweep of many items makes several. A write happens as a whole or not at all. What has expired is never returned. Every input is checked
// first, and the error names the field.
//
// It does not decide who may remember what: callers name the scope, and policies run before a write.
package longterm
