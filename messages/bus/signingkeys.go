package bus

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// How keys are written: a prefix that tells the two apart, and what it is about in base64.
const (
	seedPrefix   = "lscs_"
	publicPrefix = "lscp_"
	maxKeys      = 16
)

// SigningKey signs what people decide. The zero value signs nothing. It never shows itself.
type SigningKey struct{ key ed25519.PrivateKey }

// ControlKeys are the public keys whose signatures on decisions count. Without any, decisions need no signature.
type ControlKeys struct{ keys []ed25519.PublicKey }

// NewSigningKey makes a key.
func NewSigningKey() (SigningKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return SigningKey{}, fmt.Errorf("make a key: %w", err)
	}
	return SigningKey{key}, nil
}

// ParseSigningKey reads what Seed wrote. Its error does not show the text.
func ParseSigningKey(text string) (SigningKey, error) {
	seed, ok := keyBytes(text, seedPrefix, ed25519.SeedSize)
	if !ok {
		return SigningKey{}, errors.New("not a signing key: want " + seedPrefix + "…, as `longshore keys control` writes it")
	}
	return SigningKey{ed25519.NewKeyFromSeed(seed)}, nil
}

// Seed is the secret in one line.
func (k SigningKey) Seed() string {
	return seedPrefix + base64.RawURLEncoding.EncodeToString(k.key.Seed())
}

// Public is the public key, for ParseControlKeys; empty of the zero value.
func (k SigningKey) Public() string {
	if k.key == nil {
		return ""
	}
	return publicPrefix + base64.RawURLEncoding.EncodeToString(k.public())
}

// Any reports whether there is a key; the zero value has none.
func (k SigningKey) Any() bool { return k.key != nil }

// Sign returns the signature of a text, in base64. It must not be called for the zero value.
func (k SigningKey) Sign(text []byte) string {
	return base64.StdEncoding.EncodeToString(ed25519.Sign(k.key, text))
}

func (k SigningKey) public() ed25519.PublicKey { return ed25519.PublicKey(k.key[ed25519.SeedSize:]) }

// String hides the secret.
func (k SigningKey) String() string { return "signing key of " + k.Public() }

// GoString hides the secret.
func (k SigningKey) GoString() string { return k.String() }

// ParseControlKeys reads public keys that are separated by commas; none at all are no keys.
func ParseControlKeys(list string) (ControlKeys, error) {
	var out ControlKeys
	if strings.TrimSpace(list) == "" {
		return out, nil
	}
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, seedPrefix) {
			return ControlKeys{}, errors.New("this is a secret key: give public keys here")
		}
		key, ok := keyBytes(text, publicPrefix, ed25519.PublicKeySize)
		if !ok {
			return ControlKeys{}, errors.New("not a public key: want " + publicPrefix + "…, as `longshore keys control` prints it")
		}
		if out.keys = append(out.keys, key); len(out.keys) > maxKeys {
			return ControlKeys{}, fmt.Errorf("more than %d keys", maxKeys)
		}
	}
	return out, nil
}

func keyBytes(text, prefix string, size int) ([]byte, bool) {
	text, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return raw, ok && err == nil && len(raw) == size
}

// Any reports whether there is a key: then only what is signed counts.
func (c ControlKeys) Any() bool { return len(c.keys) > 0 }

// Has reports whether the public key of a signing key is one of these.
func (c ControlKeys) Has(k SigningKey) bool {
	for _, key := range c.keys {
		if k.key != nil && bytes.Equal(key, k.public()) {
			return true
		}
	}
	return false
}

// Verify reports whether one of the keys made the signature of a text, which Sign returned.
func (c ControlKeys) Verify(text []byte, signature string) bool {
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return false
	}
	for _, key := range c.keys {
		if ed25519.Verify(key, text, raw) {
			return true
		}
	}
	return false
}
