package web_test

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/credential"
	"github.com/longshore-run/longshore/tools/web"
)

// names is the name server of the tests: no name is looked up anywhere else.
var names = &nameServer{at: map[string][][]string{}, asked: map[string]int{}}

func TestMain(m *testing.M) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		names.serve(conn)
	}()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	os.Setenv("HTTP_PROXY", "http://127.0.0.1:1")  // attack 96: asked, it would refuse every call
	os.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // and so would this
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.Cleanup(func(code int) {
		_ = conn.Close()
		<-done
		os.Exit(code)
	}))
}

// nameServer answers what the tests say.
type nameServer struct {
	mu    sync.Mutex
	at    map[string][][]string // addresses of a name, for each time that it is looked up; the last forever
	asked map[string]int        // questions for addresses of IPv4
}

func (s *nameServer) set(name string, answers ...[]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[name], s.asked[name] = answers, 0
}

func (s *nameServer) questions(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}

func (s *nameServer) serve(conn net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		s.answer(&m)
		if out, err := m.Pack(); err == nil {
			_, _ = conn.WriteTo(out, from)
		}
	}
}

func (s *nameServer) answer(m *dnsmessage.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := m.Questions[0]
	name := strings.TrimSuffix(q.Name.String(), ".")
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, RCode: dnsmessage.RCodeNameError}
	m.Additionals = nil
	answers, known := s.at[name]
	n := s.asked[name]
	if q.Type == dnsmessage.TypeA {
		s.asked[name]++
	}
	if !known {
		return
	}
	m.RCode = dnsmessage.RCodeSuccess
	for _, a := range answers[min(n, len(answers)-1)] {
		ip := netip.MustParseAddr(a)
		head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		switch {
		case ip.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: ip.As4()}})
		case ip.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
		}
	}
}

// box is a Set of the tools.
func box(t *testing.T, cfg web.Config, credentials *credential.Store) *tools.Set {
	t.Helper()
	made, err := web.Tools(cfg, credentials)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.NewSet(made...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// local is a configuration for servers of the test.
func local(hosts ...string) web.Config {
	return web.Config{Hosts: hosts, PlainHTTP: hosts, Methods: []string{"GET", "HEAD", "POST", "PUT", "DELETE"}}
}

// call makes a call as a worker does, without retries unless the call says so.
func call(t *testing.T, set *tools.Set, name string, c tools.Call, args map[string]any) tools.Result {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	specs, err := set.Specs([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	checked, bad := set.Check(messages.ToolCall{Name: name, Arguments: string(raw)}, specs)
	if bad != nil {
		return *bad
	}
	c.Arguments = checked
	if c.Key == "" {
		c.Key = "run.1.call"
	}
	if c.Timeout == 0 {
		c.Timeout = 20 * time.Second
	}
	if c.Retries == nil {
		c.Retries = new(int)
	}
	r, err := set.Call(t.Context(), name, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func get(t *testing.T, set *tools.Set, url string) tools.Result {
	t.Helper()
	return call(t, set, "http_get", tools.Call{}, map[string]any{"url": url})
}

func text(r tools.Result) string {
	m := messages.Message{Content: r.Content}
	return m.Text()
}

// expect checks what a result says.
func expect(t *testing.T, r tools.Result, code messages.Code, want string) {
	t.Helper()
	if r.Code != code || r.IsError != (code != "") || !strings.Contains(text(r), want) {
		t.Errorf("code %q, error %v: %s\nwant %q with %q", r.Code, r.IsError, text(r), code, want)
	}
}
