package bus

import "bytes"

// SealedPrefix begins every value that is stored sealed. No text in UTF-8 begins with its first byte.
const SealedPrefix = "\xffLS1"

// IsSealed reports whether a value is stored sealed: the package keyring encrypted it.
func IsSealed(value []byte) bool { return bytes.HasPrefix(value, []byte(SealedPrefix)) }
