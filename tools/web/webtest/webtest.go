// Package webtest tests agents that call servers over HTTP, without a network: a handler answers for every host.
//
//	calling, err := webtest.Tools(web.Config{Hosts: []string{"api.example.com"}}, nil, handler)
//	run := agenttest.Run(t, agenttest.Config{Model: replies, Tools: calling}, "Read the notes.")
package webtest

import (
	"net/http"
	"net/http/httptest"

	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/credential"
	"github.com/longshore-run/longshore/tools/web"
)

// Tools are http_get and http_request, answered by a handler. What the configuration, the credentials and the agent's grants say
// holds as for real servers: r.URL.Host of a request tells the handler which host was called. A handler that panics ends the test.
func Tools(cfg web.Config, credentials *credential.Store, servers http.Handler) ([]tools.Tool, error) {
	return web.Over(transport{servers}, cfg, credentials)
}

// transport hands requests to a handler.
type transport struct{ servers http.Handler }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	t.servers.ServeHTTP(w, req.Clone(req.Context()))
	resp := w.Result()
	resp.Request = req
	return resp, nil
}
