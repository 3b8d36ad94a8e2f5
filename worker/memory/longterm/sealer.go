package longterm

// Sealer encrypts what a tenant's items say. Safe for concurrent use.
type Sealer interface {
	// Seal encrypts with the newest key of a tenant. The result can be opened with the same bound alone.
	Seal(tenant string, plain, bound []byte) ([]byte, error)
	// Open decrypts what Seal returned, with the key that was the newest then.
	Open(tenant string, sealed, bound []byte) ([]byte, error)
}
