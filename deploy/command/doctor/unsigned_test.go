package doctor_test

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/longshore-run/longshore/deploy/command/doctor"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/catalog"
)

// Where there are control keys the doctor names what does not count, for it is not signed.
func TestUnsignedEntries(t *testing.T) {
	key, err := bus.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	ns := startNATS(t, func(o *server.Options) { o.JetStream = true })
	nc, _ := connect(t, ns.ClientURL())
	setUp(t, nc)
	apply := func(name string, c bus.Config) {
		t.Helper()
		b, err := bus.Open(t.Context(), nc, c)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := catalog.New(b).PutAgent(t.Context(), messages.Definition{Name: name, Instructions: "ask"}); err != nil {
			t.Fatal(err)
		}
	}
	environ := []string{"NATS_URL=" + ns.ClientURL(), "LONGSHORE_SIGNING_KEY_FILE=" + file(t, key.Seed()+"\n")}
	keyed := append(environ[:2:2], "LONGSHORE_CONTROL_KEYS="+key.Public())
	apply("signed", bus.Config{Signer: key})
	for _, role := range []string{"dispatcher", "worker"} {
		r, _ := examine(t, keyed, "--role", role)
		r.expect(t, "signed entries", doctor.OK, "every API key")
	}
	apply("careful", bus.Config{})
	for _, role := range []string{"dispatcher", "worker"} {
		r, _ := examine(t, keyed, "--role", role)
		r.expect(t, "signed entries", doctor.Warn, "1 without a valid signature, which do not count: AGENTS careful")
	}
	if r, _ := examine(t, environ, "--role", "dispatcher"); len(r.of("signed entries")) != 0 {
		t.Errorf("without control keys: %+v", r.of("signed entries"))
	}
}
