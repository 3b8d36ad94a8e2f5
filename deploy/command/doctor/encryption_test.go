package doctor_test

import (
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/longshore-run/longshore/deploy/command/doctor"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/keyring"
)

// The doctor says whether there is a keyset, follows a rotation step by step, and counts what was destroyed.
func TestEncryptionKeys(t *testing.T) {
	ns := startNATS(t, func(o *server.Options) { o.JetStream = true })
	nc, _ := connect(t, ns.ClientURL())
	setUp(t, nc)
	b, err := bus.Open(t.Context(), nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	written := func(m *keyring.Master) (name string) {
		t.Helper()
		text, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return file(t, string(text))
	}
	first, err := keyring.NewMaster()
	if err != nil {
		t.Fatal(err)
	}
	ring := keyring.New(b, keyring.Config{Master: first})
	for _, tenant := range []string{"acme", "bell", "gone"} {
		if _, err := ring.Seal(t.Context(), tenant, []byte("x"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := ring.Destroy(t.Context(), "gone", "ann"); err != nil {
		t.Fatal(err)
	}
	added, id, err := first.Add()
	if err != nil {
		t.Fatal(err)
	}
	promoted, err := added.Promote(id)
	if err != nil {
		t.Fatal(err)
	}
	other, err := keyring.NewMaster()
	if err != nil {
		t.Fatal(err)
	}
	nats := "NATS_URL=" + ns.ClientURL()
	with := func(keyset string) []string {
		return []string{nats, "LONGSHORE_ENCRYPTION=on", "LONGSHORE_KEYSET=" + keyset}
	}
	expect := func(environ []string, check string, status doctor.Status, text string) {
		t.Helper()
		r, _ := examine(t, environ, "--role", "dispatcher")
		r.expect(t, check, status, text)
	}
	expect([]string{nats}, "encryption", doctor.OK, "off: ")
	expect([]string{nats, "LONGSHORE_ENCRYPTION=on"}, "encryption", doctor.Fail, "LONGSHORE_KEYSET is missing")
	expect(with(file(t, planted)), "encryption", doctor.Fail, "not a keyset")
	r, _ := examine(t, with(written(first)), "--role", "dispatcher")
	r.expect(t, "encryption", doctor.OK, "on: 1 key, of which "+keyring.KeyID(first.Writer())+" writes; changed ")
	r.expect(t, "tenant keys", doctor.OK, "3 tenants, 1 of which had the key destroyed; all keys are encrypted with the one that writes")
	old := written(first)
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-400*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	expect(with(old), "encryption", doctor.Warn, "changed 400d00h ago → rotate its keys")
	expect(with(written(other)), "tenant keys", doctor.Fail, "LONGSHORE_KEYSET lacks the key of 2 tenants: acme, bell")
	expect(with(written(added)), "encryption", doctor.Warn, "does not write yet → when all processes have this file, run `longshore keys rotate promote FILE`")
	expect(with(written(promoted)), "tenant keys", doctor.Warn, "the keys of 2 tenants are encrypted with an old key → ")
	ring = keyring.New(b, keyring.Config{Master: promoted})
	for _, tenant := range []string{"acme", "bell"} {
		if err := ring.Rewrap(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
	}
	expect(with(written(promoted)), "tenant keys", doctor.Warn, "no tenant needs the 1 old key of LONGSHORE_KEYSET → ")
}
