package httpstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// A provider sends a request and reads the events of its answer. It alone knows what ends a reply.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, ": keepalive\n\ndata: The quay\n\ndata: is clear.\n\nevent: stop\ndata: end\n\n")
	}))
	defer server.Close()
	ctx := context.Background()
	config := httpstream.Config{Endpoint: httpstream.Endpoint{BaseURL: server.URL, APIKey: "secret"}, URLVariable: "QUAY_BASE_URL"}
	if err := config.Check("/talk"); err != nil {
		fmt.Println(err)
		return
	}
	client := httpstream.New(config)
	defer client.Close()

	call := client.Call(ctx, nil)
	defer func() { _ = call.Close() }()
	said, err := talk(ctx, call, server.URL+"/talk")
	if err != nil {
		fmt.Println(call.Failure(err)) // an *model.Error without keys, whatever went wrong
		return
	}
	fmt.Println(said)
	// Output: The quay is clear.
}

func talk(ctx context.Context, call *httpstream.Call, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		return "", err
	}
	if err := call.Do(req); err != nil {
		if no, ok := errors.AsType[*httpstream.RefusalError](err); ok {
			wait, _ := httpstream.RetryAfter(no.Header, time.Now())
			return "", &model.Error{Class: httpstream.ClassOf(no.Status), Detail: string(no.Body), RetryAfter: wait}
		}
		return "", err
	}
	events, _, err := call.Answer()
	if err != nil {
		return "", err
	}
	var said []string
	for {
		ev, err := events.Next()
		if err != nil {
			return "", err
		}
		if ev.Name == "stop" {
			call.Complete()
			return strings.Join(said, " "), nil
		}
		said = append(said, string(ev.Data))
	}
}
