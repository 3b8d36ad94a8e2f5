package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// How keys are written: a prefix that tells them from others and from each other, and what it is about in base64.
const (
	seedPrefix   = "lsas_"
	publicPrefix = "lsap_"
	maxKeys      = 16
)

// Key signs heads. It never shows itself.
type Key struct{ key ed25519.PrivateKey }

// NewKey makes a key.
func NewKey() (Key, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("make a key: %w", err)
	}
	return Key{key}, nil
}

// ParseKey reads what Seed wrote. Its error does not show the text.
func ParseKey(text string) (Key, error) {
	seed, ok := keyBytes(text, seedPrefix, ed25519.SeedSize)
	if !ok {
		return Key{}, errors.New("not an audit key: want " + seedPrefix + "…, as `longshore audit key` writes it")
	}
	return Key{ed25519.NewKeyFromSeed(seed)}, nil
}

// Seed is the secret in one line.
func (k Key) Seed() string { return seedPrefix + base64.RawURLEncoding.EncodeToString(k.key.Seed()) }

// Public is the public key, as ParsePublicKeys reads it.
func (k Key) Public() string {
	return publicPrefix + base64.RawURLEncoding.EncodeToString(k.key[ed25519.SeedSize:])
}

// String hides the secret.
func (k Key) String() string { return "audit key of " + k.Public() }

// GoString hides the secret.
func (k Key) GoString() string { return k.String() }

// PublicKeys are those whose heads count.
type PublicKeys []string

// ParsePublicKeys reads public keys that are separated by commas; none at all are no keys.
func ParsePublicKeys(list string) (PublicKeys, error) {
	var out PublicKeys
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, seedPrefix) {
			return nil, errors.New("this is a secret key: give public keys here")
		}
		if _, ok := keyBytes(text, publicPrefix, ed25519.PublicKeySize); !ok {
			return nil, errors.New("not a public key: want " + publicPrefix + "…, as `longshore audit key` prints it")
		}
		if out = append(out, text); len(out) > maxKeys {
			return nil, fmt.Errorf("more than %d keys", maxKeys)
		}
	}
	return out, nil
}

// counts reports whether a head of the key counts. Without any keys those of every key do.
func (p PublicKeys) counts(public string) bool { return len(p) == 0 || slices.Contains(p, public) }

func keyBytes(text, prefix string, size int) ([]byte, bool) {
	text, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return raw, ok && err == nil && len(raw) == size
}

// signingContext keeps a signature of ours from being one of something else.
const signingContext = "longshore audit head 1\n"

func (k Key) sign(e *Entry) {
	e.Key, e.Signature = k.Public(), ed25519.Sign(k.key, append([]byte(signingContext), e.Hash[:]...))
}

// isSigned reports whether an entry has a valid signature of the key that it names.
func (e *Entry) isSigned() bool {
	public, ok := keyBytes(e.Key, publicPrefix, ed25519.PublicKeySize)
	return ok && ed25519.Verify(public, append([]byte(signingContext), e.Hash[:]...), e.Signature)
}
