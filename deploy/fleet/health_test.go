//go:build unix

package fleet_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/readyz":
			http.NotFound(w, r)
		case strings.HasPrefix(r.Host, "localhost"):
			http.Error(w, "no connection to NATS", http.StatusServiceUnavailable)
		}
	})
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	moved := httptest.NewServer(http.RedirectHandler(plain.URL+"/readyz", http.StatusFound))
	for _, s := range []*httptest.Server{plain, secure, moved} {
		t.Cleanup(s.Close)
	}
	port := func(s *httptest.Server) string { return s.URL[strings.LastIndex(s.URL, ":"):] }
	for name, tc := range map[string]struct {
		env  []string
		code int
		says string
	}{
		"ready":                   {[]string{"LONGSHORE_HTTP_ADDR=127.0.0.1" + port(plain)}, 0, ""},
		"ready on all addresses":  {[]string{"LONGSHORE_HTTP_ADDR=0.0.0.0" + port(plain)}, 0, ""},
		"ready on any address":    {[]string{"LONGSHORE_HTTP_ADDR=" + port(plain)}, 0, ""},
		"ready on those of IPv6":  {[]string{"LONGSHORE_HTTP_ADDR=[::]" + port(plain)}, 0, ""},
		"ready over HTTPS":        {[]string{"LONGSHORE_HTTP_ADDR=0.0.0.0" + port(secure), "LONGSHORE_TLS_CERT=x"}, 0, ""},
		"HTTP in place of HTTPS":  {[]string{"LONGSHORE_HTTP_ADDR=0.0.0.0" + port(plain), "LONGSHORE_TLS_CERT=x"}, 1, "not ready"},
		"not ready":               {[]string{"LONGSHORE_HTTP_ADDR=localhost" + port(plain)}, 1, "no connection to NATS"},
		"another server is there": {[]string{"LONGSHORE_HTTP_ADDR=127.0.0.1" + port(moved)}, 1, "not ready"},
		"nothing listens there":   {[]string{"LONGSHORE_HTTP_ADDR=127.0.0.1:1"}, 1, "not ready"},
		"an unknown port":         {[]string{"LONGSHORE_HTTP_ADDR=127.0.0.1:0"}, 2, "LONGSHORE_HTTP_ADDR"},
		"no address":              {[]string{"LONGSHORE_HTTP_ADDR=here"}, 2, "LONGSHORE_HTTP_ADDR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, append(tc.env, "HTTP_PROXY=http://127.0.0.1:1"), "health")
			if got.code != tc.code || !strings.Contains(got.stderr, tc.says) || strings.Count(got.stderr, "\n") > 1 {
				t.Errorf("%+v", got)
			}
			asJSON := call(t, append(tc.env, "HTTP_PROXY=http://127.0.0.1:1"), "health", "-o", "json")
			if asJSON.code != tc.code || !strings.Contains(asJSON.stderr, tc.says) {
				t.Errorf("%+v", asJSON)
			}
			if tc.code == 2 { // nothing was asked
				if asJSON.stdout != "" {
					t.Errorf("%+v", asJSON)
				}
				return
			}
			told := decode[struct {
				OK    bool
				URL   string
				Error string
			}](t, asJSON.stdout)
			if told.OK != (tc.code == 0) || told.OK != (told.Error == "") || !strings.Contains(told.Error, tc.says) || !strings.HasSuffix(told.URL, "/readyz") {
				t.Errorf("%+v", told)
			}
		})
	}
}
