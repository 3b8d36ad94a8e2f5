package keyring_test

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/keyring"
)

// A value is sealed for a tenant and bound to what it is and where it stands.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	servers, err := embedded.Start(ctx, embedded.Config{NoRedis: true})
	if err != nil {
		panic(err)
	}
	defer func() { _ = servers.Stop() }()
	nc, err := servers.Conn()
	if err != nil {
		panic(err)
	}
	defer nc.Close()
	if err := bus.Setup(ctx, nc, bus.Streams{}); err != nil {
		panic(err)
	}
	b, err := bus.Open(ctx, nc, bus.Config{})
	if err != nil {
		panic(err)
	}
	master, err := keyring.NewMaster() // a process reads it from LONGSHORE_KEYSET
	if err != nil {
		panic(err)
	}
	keys := keyring.New(b, keyring.Config{Master: master})

	place := keyring.Bind("note", "conversations", "note-7") // a purpose of its own, then all that names the value
	sealed, err := keys.Seal(ctx, "acme", []byte("call back on Monday"), place)
	fmt.Println(keyring.Sealed(sealed), err)

	plain, err := keys.Open(ctx, "acme", sealed, place)
	fmt.Println(string(plain), err)

	_, err = keys.Open(ctx, "acme", sealed, keyring.Bind("note", "conversations", "note-8"))
	fmt.Println(err)
	// Output:
	// true <nil>
	// call back on Monday <nil>
	// it is sealed and does not open: it was changed, or moved here from another place
}
