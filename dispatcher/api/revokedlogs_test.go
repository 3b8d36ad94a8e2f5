package api_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages/control"
)

// Who follows the log entries of a run hears no more of them once his key is worth nothing.
func TestRevokedKeyEndsLogs(t *testing.T) {
	g := openGuarded(t)
	var ahead atomic.Int64
	g.url = g.another(20*time.Millisecond, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	header := g.key("acme", control.RoleSubmitter)
	g.do("POST", "/v1/tasks", `{"id":"r","input":"wait"}`, http.StatusAccepted, nil, header...)
	resp := g.send("GET", "/v1/tasks/r/logs?follow=true", "", header...)
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, resp.Body)
	}()
	if _, err := g.client.Keys().Revoke(t.Context(), strings.Split(header[1], "_")[1], "ann"); err != nil {
		t.Fatal(err)
	}
	ahead.Store(int64(10 * time.Second))
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the stream is still open")
	}
	g.do("GET", "/v1/tasks/r/logs", "", http.StatusUnauthorized, nil, header...)
}
