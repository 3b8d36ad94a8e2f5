// Command go serves two tools over NATS, as docs/tools/remote.md describes.
//
//	go run ./deploy/examples/remote/go deploy/examples/remote
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "name the folder of the definitions, such as deploy/examples/remote")
		os.Exit(2)
	}
	if err := serve(ctx, cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pilots remembers which call made which booking, so that a call that comes twice books once. A real program keeps this where its
// bookings are.
type pilots struct {
	mu     sync.Mutex
	booked map[string]int
}

func serve(ctx context.Context, url, definitions string) error {
	nc, err := nats.Connect(url, nats.Name("harbour tools"), nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer nc.Close()
	service, err := micro.AddService(nc, micro.Config{Name: "longshore-tools", Version: "1.0.0", Description: "tools of the harbour"})
	if err != nil {
		return err
	}
	p := &pilots{booked: map[string]int{}}
	for name, tool := range map[string]func(micro.Request) (string, error){"tide_table": tideTable, "book_pilot": p.book} {
		definition, err := os.ReadFile(filepath.Join(definitions, name+".json")) //nolint:gosec // the folder that the operator names
		if err != nil {
			return err
		}
		err = service.AddEndpoint(name, micro.HandlerFunc(answered(tool)), micro.WithEndpointSubject("tools."+name),
			micro.WithEndpointMetadata(map[string]string{"longshore.tool": string(definition)}))
		if err != nil {
			return err
		}
	}
	fmt.Println("serving")
	<-ctx.Done()
	return service.Stop()
}

// answered sends what a tool returns.
func answered(tool func(micro.Request) (string, error)) func(micro.Request) {
	return func(r micro.Request) {
		if end, err := time.Parse(time.RFC3339, r.Headers().Get("Longshore-Deadline")); err == nil && time.Now().After(end) {
			return // the worker has given the call up
		}
		text, err := tool(r)
		answer := map[string]any{"text": text}
		if err != nil {
			answer = map[string]any{"text": err.Error(), "error": true}
		}
		_ = r.RespondJSON(answer) // the connection is gone, and the worker will say so
	}
}

func tideTable(r micro.Request) (string, error) {
	var in struct {
		Harbour string `json:"harbour"`
		Day     string `json:"day"`
	}
	if err := json.Unmarshal(r.Data(), &in); err != nil {
		return "", err
	}
	if in.Harbour != "Cuxhaven" {
		return "", fmt.Errorf("there is no tide table of %q; there is one of Cuxhaven", in.Harbour)
	}
	return in.Day + " 04:12 high 3.4 m, 10:31 low 0.4 m, 16:40 high 3.3 m, 22:55 low 0.5 m", nil
}

func (p *pilots) book(r micro.Request) (string, error) {
	var in struct {
		Ship string `json:"ship"`
	}
	if err := json.Unmarshal(r.Data(), &in); err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// The key is unique in its run, and the run in its tenant.
	key := r.Headers().Get("Longshore-Tenant") + " " + r.Headers().Get("Longshore-Run") + " " + r.Headers().Get("Idempotency-Key")
	if p.booked[key] == 0 {
		p.booked[key] = len(p.booked) + 1
	}
	return fmt.Sprintf("Pilot %d comes to %s", p.booked[key], in.Ship), nil
}
