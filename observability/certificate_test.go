package observability_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/observability"
)

// issue writes a new certificate for 127.0.0.1 with a name, and its key.
func issue(t *testing.T, certFile, keyFile, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A certificate serves HTTPS alone, and is read again when its files change; a broken one leaves the old one in place.
func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if _, err := observability.LoadCertificate(cert, key, nil, nil); err == nil {
		t.Error("there is none, and no error")
	}
	issue(t, cert, key, "one")
	var ahead atomic.Int64
	c, err := observability.LoadCertificate(cert, key, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	addr, wait, err := observability.ServeWith(ctx, "127.0.0.1:0", http.NotFoundHandler(), observability.ServeConfig{Certificate: c})
	if err != nil {
		t.Fatal(err)
	}
	name := func(most uint16) (string, error) {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MaxVersion: most, NextProtos: []string{"h2"}}}
		conn, err := dialer.DialContext(t.Context(), "tcp", addr.String())
		if err != nil {
			return "", err
		}
		defer conn.Close()
		state := conn.(*tls.Conn).ConnectionState()
		return state.PeerCertificates[0].Subject.CommonName + " " + state.NegotiatedProtocol, nil
	}
	expect := func(want string) {
		t.Helper()
		if got, err := name(0); got != want+" h2" || err != nil {
			t.Errorf("got %q, %v, want %s", got, err, want)
		}
	}
	expect("one")
	if got, err := name(tls.VersionTLS11); err == nil {
		t.Errorf("TLS 1.1 is served: %s", got)
	}
	if status, body, err := get(t, addr, "/"); status != http.StatusBadRequest || !strings.Contains(body, "HTTPS") {
		t.Errorf("without TLS: %d %q %v", status, body, err)
	}
	issue(t, cert, key, "two, longer")
	expect("one")
	ahead.Add(int64(10 * time.Second))
	expect("two, longer")
	if err := os.WriteFile(key, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	ahead.Add(int64(10 * time.Second))
	expect("two, longer")
	issue(t, cert, key, "three")
	ahead.Add(int64(10 * time.Second))
	expect("three")
	cancel()
	if err := wait(); err != nil {
		t.Error(err)
	}
}
