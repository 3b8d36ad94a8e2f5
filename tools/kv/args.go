package kv

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode"

	"github.com/longshore-run/longshore/tools"
)

// maxKey is how many bytes a key may have.
const maxKey = 256

// badKey says what is wrong with a key or prefix; empty: nothing.
func badKey(field, key string) string {
	for _, r := range key { // of JSON, which is UTF-8
		if !unicode.IsPrint(r) {
			return field + ": must be printable characters, and spaces"
		}
	}
	if len(key) > maxKey {
		return fmt.Sprintf("%s: must not be longer than %d bytes", field, maxKey)
	}
	return ""
}

func wrongKey(key string) string {
	if key == "" {
		return "key: must not be empty"
	}
	return badKey("key", key)
}

// callID is the same for each attempt of a call, and of a bounded size. Runs that share a scope have calls of their own.
func callID(c tools.Call) string {
	if c.Key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(c.Run.String() + "\n" + c.Key))
	return hex.EncodeToString(sum[:])
}
