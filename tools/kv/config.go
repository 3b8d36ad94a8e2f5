package kv

import (
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is what an operator grants. Zero means the default.
type Config struct {
	// Redis is the credential whose secret is the URL of a Redis; default that of the worker.
	Redis      string   `json:"redis,omitempty"`
	Scopes     []string `json:"scopes,omitzero"`      // that agents may choose with grants.kv; default all
	ValueBytes int      `json:"valueBytes,omitempty"` // of one value; default 16 KiB, at most 60,000 so that it is read in one answer
	Keys       int      `json:"keys,omitempty"`       // of one scope; default 1,000, at most 10,000
	Bytes      int64    `json:"bytes,omitempty"`      // of one scope, keys and values; default 4 MiB, at most 64 MiB
	// TenantBytes are those of all scopes of a tenant; default 256 MiB, at most 64 GiB.
	TenantBytes int64             `json:"tenantBytes,omitempty"`
	TTL         messages.Duration `json:"ttl,omitzero"` // of a value, by default and at most; default 720h, at most 8760h
}

// Limits and defaults of Config.
const (
	defaultValue  = 16 << 10
	mostValue     = 60_000
	defaultKeys   = 1000
	mostKeys      = 10_000
	defaultBytes  = 4 << 20
	mostBytes     = 64 << 20
	defaultTenant = 256 << 20
	mostTenant    = 64 << 30
	defaultTTL    = 30 * 24 * time.Hour
	mostTTL       = 365 * 24 * time.Hour
)

// ParseConfig reads an operator's part, checks it and fills in the defaults. The error is a *messages.FieldError.
func ParseConfig(part []byte) (c Config, _ error) {
	if err := strict.Decode(part, &c); err != nil {
		return Config{}, err
	}
	return c, c.check()
}

// check fills in the defaults.
func (c *Config) check() error {
	wrong := func(field, format string, args ...any) error {
		return &messages.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	for i, s := range c.Scopes {
		if s != messages.KVRun && s != messages.KVSession && s != messages.KVTenant {
			return wrong(fmt.Sprintf("scopes[%d]", i), "must be run, session or tenant")
		}
	}
	if c.Scopes != nil && len(c.Scopes) == 0 {
		return wrong("scopes", "is empty: name those that agents may choose, or leave it out for all")
	}
	if c.ValueBytes == 0 {
		c.ValueBytes = defaultValue
	}
	if c.Keys == 0 {
		c.Keys = defaultKeys
	}
	if c.Bytes == 0 {
		c.Bytes = defaultBytes
	}
	if c.TenantBytes == 0 {
		c.TenantBytes = max(defaultTenant, c.Bytes)
	}
	if c.TTL == 0 {
		c.TTL = messages.Duration(defaultTTL)
	}
	switch {
	case c.ValueBytes < 1 || c.ValueBytes > mostValue:
		return wrong("valueBytes", "must be 1 to %d", mostValue)
	case c.Keys < 1 || c.Keys > mostKeys:
		return wrong("keys", "must be 1 to %d", mostKeys)
	case c.Bytes < int64(c.ValueBytes) || c.Bytes > mostBytes:
		return wrong("bytes", "must be valueBytes (%d) to %d", c.ValueBytes, mostBytes)
	case c.TenantBytes < c.Bytes || c.TenantBytes > mostTenant:
		return wrong("tenantBytes", "must be bytes (%d) to %d", c.Bytes, int64(mostTenant))
	case c.TTL < messages.Duration(time.Second) || c.TTL > messages.Duration(mostTTL):
		return wrong("ttl", "must be 1s to 8760h")
	}
	return nil
}

// Limits are what a store keeps to.
func (c *Config) Limits() Limits {
	return Limits{Keys: c.Keys, Bytes: c.Bytes, TenantBytes: c.TenantBytes, TTL: time.Duration(c.TTL)}
}
