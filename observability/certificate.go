package observability

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages/document"
)

// certificateEvery is how often the files of a certificate are looked at, while there are handshakes.
const certificateEvery = 10 * time.Second

// maxCertificate bounds a certificate with its chain, and a private key, in bytes.
const maxCertificate = 1 << 20

// Certificate is that of a server, read again when its files change.
type Certificate struct {
	cert, key string // files
	now       func() time.Time
	log       *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	stamp   stamp // of the files that current was read from
	looked  time.Time
}

// stamp tells versions of the two files apart.
type stamp [2]struct {
	modified time.Time
	size     int64
}

// LoadCertificate reads a certificate with its chain and its private key from PEM files. A nil now is time.Now, a nil
// log discards.
func LoadCertificate(cert, key string, now func() time.Time, log *slog.Logger) (*Certificate, error) {
	if now == nil {
		now = time.Now
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Certificate{cert: cert, key: key, now: now, log: log}
	if err := c.load(now()); err != nil {
		return nil, err
	}
	return c, nil
}

// load reads the files if they are others than before.
func (c *Certificate) load(now time.Time) error {
	c.looked = now
	var at stamp
	for i, name := range []string{c.cert, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("read the certificate: %w", err)
		}
		at[i].modified, at[i].size = info.ModTime(), info.Size()
	}
	if c.current != nil && at == c.stamp {
		return nil
	}
	pair, err := readPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("read the certificate %s with the key %s: %w", c.cert, c.key, err)
	}
	c.current, c.stamp = &pair, at
	return nil
}

func readPair(cert, key string) (tls.Certificate, error) {
	chain, err := document.Read(cert, maxCertificate)
	if err != nil {
		return tls.Certificate{}, err
	}
	private, err := document.Read(key, maxCertificate)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(chain, private)
}

// get is the certificate for a handshake. When the new one cannot be read, as while it is being written, the old one
// continues.
func (c *Certificate) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.looked) >= certificateEvery {
		before := c.current
		if err := c.load(now); err != nil {
			c.log.WarnContext(context.WithoutCancel(hello.Context()), "read the certificate: the previous one stays in use", "err", err)
		} else if c.current != before {
			c.log.InfoContext(context.WithoutCancel(hello.Context()), "certificate read again", "file", c.cert)
		}
	}
	return c.current, nil
}

// config is that of a server with the certificate.
func (c *Certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}
