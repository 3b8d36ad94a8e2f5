package command

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
)

// healthTimeout bounds the look at a process that may hang.
const healthTimeout = 3 * time.Second

// healthCommand is `longshore health`. It asks the process that runs with the same environment, whether it is
// ready. Container images without a shell have no other way to say so.
func (p *Process) healthCommand() *cobra.Command {
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "health", Short: "Check whether the dispatcher or worker of this environment is ready",
		Long: "Ask /readyz of the dispatcher or worker with this environment, on this machine. It is for container health checks.\n" +
			"It exits with 0 if the process is ready and with 1 if not:\n\n" + settings.Describe(&settings.Health{}),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s settings.Health
			if err := settings.Load(&s, p.Environ()); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
			defer cancel()
			req, err := readyRequest(ctx, s)
			if err != nil {
				return err
			}
			err = ready(req)
			if !*asJSON {
				return err
			}
			h := health{OK: err == nil, URL: req.URL.String()}
			if err != nil {
				h.Error = err.Error()
			}
			return errors.Join(err, render.WriteJSON(cmd, h, p.raw()))
		},
	}
	asJSON = render.OutputFlag(cmd)
	return cmd
}

// health is what the command writes as JSON.
type health struct {
	OK    bool   `json:"ok"`
	URL   string `json:"url"` // what was asked
	Error string `json:"error,omitempty"`
}

// readyRequest is for the process at an address. A wildcard address is asked on loopback.
func readyRequest(ctx context.Context, s settings.Health) (*http.Request, error) {
	host, port, err := net.SplitHostPort(s.HTTPAddr)
	if err != nil {
		return nil, settings.Errorf("LONGSHORE_HTTP_ADDR: %v", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if s.TLSCert != "" {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return nil, settings.Errorf("LONGSHORE_HTTP_ADDR: %v", err)
	}
	return req, nil
}

// ready asks, and says why it is not.
func ready(req *http.Request) error {
	client := http.Client{
		Transport: &http.Transport{
			Proxy: nil, DisableKeepAlives: true,
			// It asks its own process and tells it nothing; the certificate names another host than this.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it redirects") },
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	const most = 512
	why, _ := io.ReadAll(io.LimitReader(resp.Body, most)) // it is shown as far as it was read
	return fmt.Errorf("not ready: %s: %q", resp.Status, why)
}
