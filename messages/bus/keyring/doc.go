// Package keyring encrypts what is stored of tenants: a data keyset for each tenant, wrapped by one master keyset.
//
// A process makes one [Keyring] with [New], from its Bus and the [Master] of LONGSHORE_KEYSET, and hands it to what stores:
// [Keyring.Seal] and [Keyring.Open] are all that those need. The keyset of a tenant is made at its first Seal, by whichever process
// is first, and kept in the bucket KEYRING, encrypted with the master keyset and bound to the tenant. Processes cache at most
// maxCached of them, each for a minute.
//
// A sealed value begins with [Prefix], which no text in UTF-8 begins with, followed by the id of its key. So what was stored before
// there were keys is told apart and still read, unless Config.Required says that it is refused.
//
// What it guarantees: a value opens only for the tenant and with the associated data that it was sealed for; any key that was ever
// the newest of a tenant still reads; two processes never make different keysets of one tenant. [Keyring.Destroy] leaves a tombstone in place
// of the keyset: what was sealed with it can no longer be read by anyone, and the error says since when.
//
// What it does not do: it does not hide how long a value is, when it was stored or which tenant it is of, and it does not
// protect a fleet against a process that holds the master keyset and may read the bucket.
package keyring
