package web_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/credential"
	"github.com/longshore-run/longshore/tools/web"
)

// serve is a server on loopback and its host with the port.
func serve(t *testing.T, h http.HandlerFunc) (url, host string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, strings.TrimPrefix(s.URL, "http://")
}

// raw is a server that answers each connection with some bytes once it has read the head of a request.
func raw(t *testing.T, answer func(net.Conn)) (url, host string) {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		answer(conn)
	})
}

// untouched is a server that no request may reach.
func untouched(t *testing.T) (url, host string) {
	t.Helper()
	return serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s arrived", r.Method, r.URL) })
}

// Attacks 80 and 81: what is not granted is refused before a name server is asked.
func TestAttacks80And81NotGranted(t *testing.T) {
	names.set("other.example", []string{"127.0.0.1"})
	names.set("listed.example", []string{"127.0.0.1"})
	set := box(t, web.Config{Hosts: []string{"listed.example"}}, nil)
	expect(t, get(t, set, "https://other.example/"), messages.CodePolicy, "the host other.example:443 is not one that the operator lists")
	none := tools.Call{Grants: messages.Grants{Hosts: []string{}}}
	expect(t, call(t, set, "http_get", none, map[string]any{"url": "https://listed.example/"}), messages.CodePolicy, "not in the agent's grants")
	method := tools.Call{Grants: messages.Grants{Methods: []string{"HEAD"}}}
	expect(t, call(t, set, "http_get", method, map[string]any{"url": "https://listed.example/"}), messages.CodePolicy, "the method GET is not in the agent's grants")
	expect(t, call(t, set, "http_request", tools.Call{}, map[string]any{"url": "https://listed.example/", "method": "POST"}), messages.CodePolicy, "the method POST is not one that the operator lists (GET, HEAD)")
	expect(t, get(t, set, "http://listed.example/"), messages.CodePolicy, "listed.example:80 may be called over https alone")
	expect(t, get(t, set, "https://listed.example:22/"), messages.CodePolicy, "listed.example:22 is not one that the operator lists")
	for _, name := range []string{"other.example", "listed.example"} {
		if n := names.questions(name); n != 0 {
			t.Errorf("%s was looked up %d times", name, n)
		}
	}
	if _, err := web.Tools(web.Config{}, nil); err == nil {
		t.Error("tools were made without a host")
	}
}

// Attacks 82 to 85, 90 and 92: a listed name that leads to an address beyond the open internet is not dialled.
func TestAttacks82To92PrivateAddresses(t *testing.T) {
	for n, addresses := range [][]string{
		{"127.0.0.1"}, {"::1"}, {"0.0.0.0"}, {"::"}, // 82
		{"10.0.0.1"}, {"172.16.0.1"}, {"192.168.0.1"}, {"100.64.0.1"}, {"fc00::1"}, // 83
		{"169.254.169.254"}, {"fd00:ec2::254"}, {"100.100.100.200"}, {"168.63.129.16"}, // 84
		{"::ffff:127.0.0.1"}, {"64:ff9b::a9fe:a9fe"}, {"2002:7f00:1::"}, {"::127.0.0.1"}, // 85
		{"127.0.0.1", "::1"}, // 92
	} {
		name := fmt.Sprintf("private%d.example", n)
		names.set(name, addresses)
		r := get(t, box(t, web.Config{Hosts: []string{name}}, nil), "https://"+name)
		expect(t, r, messages.CodePolicy, "resolves to an address that is not public")
		if strings.Contains(text(r), addresses[0]) {
			t.Errorf("the model is told an address: %s", text(r))
		}
	}
	// Written as an address, none is on a list of names.
	for _, host := range []string{"127.0.0.1", "[::1]", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "169.254.169.254", "metadata.google.internal", "localhost"} {
		expect(t, get(t, box(t, web.Config{Hosts: []string{"listed.example"}}, nil), "https://"+host), messages.CodePolicy, "is not one that the operator lists")
	}
	// A name that may lead to private addresses never leads to those of metadata.
	for n, address := range []string{"169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16"} {
		name := fmt.Sprintf("inside%d.example", n)
		names.set(name, []string{address})
		r := get(t, box(t, web.Config{Hosts: []string{name}, Private: []string{name}}, nil), "https://"+name)
		expect(t, r, messages.CodePolicy, "resolves to an address that is not public")
	}
}

// Attacks 86 to 89 and 101: hosts in unusual forms.
func TestAttacks86To89UnusualHosts(t *testing.T) {
	set := box(t, local("listed.example", "127.0.0.1:9"), nil)
	for url, want := range map[string]string{
		"http://2130706433/": "unusual form", "http://0x7f000001/": "unusual form", "http://0x7f.1/": "unusual form", "http://0177.0.0.1/": "unusual form", "http://127.1/": "unusual form", "http://0/": "unusual form",
		"http://①②⑦.⓪.⓪.①/": "the host 127.0.0.1:80 is not one", "http://１２７.0.0.1/": "the host 127.0.0.1:80 is not one", "http://127。0。0。1/": "the host 127.0.0.1:80 is not one",
		"https://listed.example@evil.example/": "must not hold a user", "https://u:p@listed.example/": "must not hold a user",
		"https://evil.example#@listed.example/": "the host evil.example:443 is not one", `https://listed.example\@evil.example/`: "is not an address",
		"http://[fe80::1%25eth0]/": "must not hold the zone", "https://listed.example.evil.example/": "is not one that the operator lists",
		"file:///etc/passwd": "must begin with https://", "gopher://listed.example/": "must begin with https://", "https:///x": "has no host", "listed.example/x": "must begin with https://", "mailto:a@b": "is not an address", "": "must begin with https://",
		"https://listed.example/\r\nX: y": "is not an address", "https://listed.example\r\n/": "is not an address", "https://listed.example/" + strings.Repeat("a", 9000): "longer than 8192 bytes",
	} {
		r := get(t, set, url)
		if !r.IsError || !strings.Contains(text(r), want) {
			t.Errorf("%.80s: %s", url, text(r))
		}
	}
}

// Attack 91: a name that changes its mind between two requests gains nothing.
func TestAttack91Rebinding(t *testing.T) {
	var n atomic.Int64
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	port := host[strings.LastIndexByte(host, ':'):]
	names.set("rebinds.example", []string{"127.0.0.1"}, []string{"169.254.169.254"})
	cfg := local("rebinds.example" + port)
	cfg.Private = cfg.Hosts
	expect(t, get(t, box(t, cfg, nil), strings.Replace(url, "127.0.0.1", "rebinds.example", 1)), messages.CodePolicy, "/again: the host resolves to an address")
	if n.Load() != 1 || names.questions("rebinds.example") != 2 {
		t.Errorf("%d requests, %d questions", n.Load(), names.questions("rebinds.example"))
	}
}

// Attack 93: each redirect is judged as the first request was.
func TestAttack93Redirects(t *testing.T) {
	_, off := untouched(t)
	to := ""
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	names.set("inward.example", []string{"127.0.0.1"})
	cfg := local(host, "inward.example")
	set := box(t, cfg, nil)
	for location, want := range map[string]string{
		"http://" + off + "/": "is not one that the operator lists", "http://127.0.0.1:22/": "is not one that the operator lists", "//evil.example/": "the host evil.example:80 is not one",
		"http://inward.example/": "resolves to an address that is not public", "file:///etc/passwd": "must begin with https://", "http://u:p@" + host: "must not hold a user",
		"https://listed.example:22": "is not one that the operator lists", "http://[::1]": "is not one that the operator lists", "http://a b": "must begin with https://", strings.Repeat("a", 9000): "must begin with https://",
	} {
		to = location
		r := get(t, set, url)
		expect(t, r, messages.CodePolicy, want)
	}
	to = "http://inward.example/"
	ruled := tools.Call{Redirect: func(at string) error { return fmt.Errorf("the rules forbid %s", at) }}
	expect(t, call(t, set, "http_get", ruled, map[string]any{"url": url}), messages.CodePolicy, "not followed: the rules forbid inward.example:80")
	to = "http://127.0.0.1:22/"
	r := call(t, set, "http_request", tools.Call{}, map[string]any{"url": url, "method": "POST"})
	expect(t, r, messages.CodePolicy, "POST "+url+" answered 307 with a redirect that is not followed") // so that it is known to have arrived
}

// Attack 94: redirects without an end.
func TestAttack94RedirectLoop(t *testing.T) {
	var n atomic.Int64
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, fmt.Sprintf("/%d", n.Add(1)), http.StatusFound)
	})
	expect(t, get(t, box(t, local(host), nil), url), messages.CodePolicy, "there were 5 before it")
	if n.Load() != 6 {
		t.Errorf("%d requests", n.Load())
	}
}

// store holds one credential for some hosts.
func store(t *testing.T, hosts ...string) *credential.Store {
	t.Helper()
	s, err := credential.New(map[string]credential.Config{"tracker": {Env: "X", Hosts: hosts}}, func(credential.Config) (string, error) { return "s3cret-of-the-tracker", nil })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Attack 95: what proves who is asking goes to no other host, and cookies go nowhere.
func TestAttack95CredentialsAcrossHosts(t *testing.T) {
	type seen struct{ auth, cookie, custom, accept, agent string }
	got := make(chan seen, 9)
	look := func(r *http.Request) {
		got <- seen{r.Header.Get("Authorization"), r.Header.Get("Cookie"), r.Header.Get("X-Api-Key"), r.Header.Get("Accept"), r.Header.Get("User-Agent")}
	}
	second, other := serve(t, func(w http.ResponseWriter, r *http.Request) { look(r) })
	first, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		look(r)
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/same", http.StatusFound)
			return
		}
		http.Redirect(w, r, second, http.StatusFound)
	})
	set := box(t, local(host, other), store(t, host))
	r := call(t, set, "http_get", tools.Call{}, map[string]any{"url": first, "credential": "tracker", "headers": map[string]string{"X-Api-Key": "k", "Accept": "text/plain"}})
	expect(t, r, "", "HTTP 200")
	close(got)
	var all []seen
	for s := range got {
		all = append(all, s)
	}
	at := seen{"Bearer s3cret-of-the-tracker", "", "k", "text/plain", "longshore"}
	if want := []seen{at, at, {"", "", "", "text/plain", "longshore"}}; fmt.Sprint(all) != fmt.Sprint(want) {
		t.Errorf("the servers got %+v, want %+v", all, want)
	}
	_, away := untouched(t)
	set = box(t, local(away), store(t, host))
	for name, c := range map[string]struct {
		grants messages.Grants
		name   string
		want   string
	}{
		"another host": {messages.Grants{}, "tracker", "the credential is not for this host"}, "not granted": {messages.Grants{Credentials: []string{}}, "tracker", "is not in the agent's grants"},
		"unknown": {messages.Grants{}, "nope", `there is no credential "nope"`},
	} {
		r := call(t, set, "http_get", tools.Call{Grants: c.grants}, map[string]any{"url": "http://" + away, "credential": c.name})
		if expect(t, r, messages.CodePolicy, c.want); strings.Contains(text(r), "s3cret") {
			t.Errorf("%s: %s", name, text(r))
		}
	}
}

// Attack 96: the proxy of the environment, which TestMain sets to an address where nothing listens, is not asked. It would be for a name,
// though not for a loopback address.
func TestAttack96Proxy(t *testing.T) {
	url, host := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "direct") })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://direct.example", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if proxy, err := http.ProxyFromEnvironment(req); err != nil || proxy == nil {
		t.Fatalf("the environment names the proxy %v, %v", proxy, err)
	}
	names.set("direct.example", []string{"127.0.0.1"})
	cfg := local("direct.example" + host[strings.LastIndexByte(host, ':'):])
	cfg.Private = cfg.Hosts
	expect(t, get(t, box(t, cfg, nil), strings.Replace(url, "127.0.0.1", "direct.example", 1)), "", "\n\ndirect")
}

// Attacks 97 and 99: what a body grows to is counted after decompression, and an endless one is cut.
func TestAttacks97And99Bombs(t *testing.T) {
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			zeros := make([]byte, 1<<20)
			for range 256 {
				for i := range zeros {
					zeros[i] = 'a'
				}
				if _, err := z.Write(zeros); err != nil {
					return
				}
			}
			_ = z.Close()
		case "/nested":
			w.Header().Set("Content-Encoding", "gzip, gzip")
			_, _ = io.WriteString(w, "x")
		case "/br":
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, "x")
		case "/bad":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "this is no gzip")
		default:
			for {
				if _, err := io.WriteString(w, strings.Repeat("b", 1<<16)); err != nil {
					return
				}
			}
		}
	})
	cfg := local(host)
	cfg.MaxBody = 1 << 18
	set := box(t, cfg, nil)
	for path, letter := range map[string]string{"/gzip": "a", "/endless": "b"} {
		r := get(t, set, url+path)
		if expect(t, r, "", "(The body is longer; this is its beginning.)"); strings.Count(text(r), letter) < 200_000 || fmt.Sprint(r.Meta["truncated"]) != "true" && fmt.Sprintf("%s", r.Meta["truncated"]) != "true" {
			t.Errorf("%s: %d bytes, meta %s", path, len(text(r)), r.Meta)
		}
	}
	expect(t, get(t, set, url+"/nested"), messages.CodeToolFailed, `in the encoding "gzip, gzip", which was not asked for`)
	expect(t, get(t, set, url+"/br"), messages.CodeToolFailed, `in the encoding "br", which was not asked for`)
	expect(t, get(t, set, url+"/bad"), messages.CodeToolFailed, "broke off after 0 bytes: gzip: invalid header")
}

// Bold text that is never closed is opened anew in each paragraph: a small page is a tree thousands of times as large.
func TestPagesThatGrow(t *testing.T) {
	var page strings.Builder
	page.WriteString("<p>")
	for i := range 400 {
		fmt.Fprintf(&page, "<b id=%d>", i)
	}
	page.WriteString(strings.Repeat("<p>x", 30_000))
	url, host := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, page.String())
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := get(t, box(t, local(host), nil), url)
	runtime.ReadMemStats(&after)
	expect(t, r, messages.CodeToolFailed, "the page cannot be written as Markdown; ask with format text for its HTML")
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 1024 {
		t.Errorf("a page of %d bytes took %d MiB", page.Len(), used)
	}
}

// Attack 98: heads and bodies that come slowly.
func TestAttack98Slowloris(t *testing.T) {
	slow := func(head string) (string, string) {
		return raw(t, func(c net.Conn) {
			if _, err := io.WriteString(c, head); err == nil {
				_, _ = c.Read(make([]byte, 1)) // until the client is gone
			}
		})
	}
	for _, head := range []string{"HTTP/1.1 200 OK\r\nX-A: ", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin"} {
		url, host := slow(head)
		set := box(t, local(host), nil)
		soon := tools.Call{Timeout: 300 * time.Millisecond}
		expect(t, call(t, set, "http_get", soon, map[string]any{"url": url}), messages.CodeToolFailed, "did not finish within 300ms")
		expect(t, call(t, set, "http_request", soon, map[string]any{"url": url, "method": "POST"}), messages.CodeToolUnknownOutcome, "may or may not have taken effect")
	}
}

// Attacks 100 and 102: heads without measure, and lengths that are not true.
func TestAttacks100And102Lies(t *testing.T) {
	for _, c := range []struct {
		answer string
		code   messages.Code
		want   string
	}{
		{"HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("a", 1<<20) + "\r\n\r\n", messages.CodeToolFailed, "response headers exceeded"},
		{"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: b\r\n", 100_000) + "\r\n", messages.CodeToolFailed, "response headers exceeded"},
		{strings.Repeat("HTTP/1.1 103 Early Hints\r\nX-A: b\r\n\r\n", 100_000), messages.CodeToolFailed, "no response"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort", messages.CodeToolFailed, "broke off after 5 bytes: unexpected EOF"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nexact and more", "", "exact"},
		{"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", messages.CodeToolFailed, "no response"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", messages.CodeToolFailed, "no response"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", messages.CodeToolFailed, "broke off"},
		{"nonsense\r\n\r\n", messages.CodeToolFailed, "no response"},
		{"", messages.CodeToolFailed, "no response"},
	} {
		url, host := raw(t, func(conn net.Conn) { _, _ = io.WriteString(conn, c.answer) })
		expect(t, get(t, box(t, local(host), nil), url), c.code, c.want)
	}
}

// Attack 101: headers that are not the model's to set, and line breaks in them.
func TestAttack101Headers(t *testing.T) {
	url, host := untouched(t)
	set := box(t, local(host), store(t, host))
	for name, value := range map[string]string{
		"X-A": "a\r\nX-B: c", "X-A\r\nX-B": "c", "": "a", "X A": "b", "X-Ä": "b", "X-Long": strings.Repeat("a", 9000), "X-Nul": "a\x00b",
		"Host": "evil.example", "authorization": "Bearer x", "Cookie": "a=b", "Connection": "X-A", "Transfer-Encoding": "chunked", "Content-Length": "3", "TE": "trailers",
		"Proxy-Authorization": "x", "Upgrade": "h2c", "Accept-Encoding": "br", "Idempotency-Key": "mine", "User-Agent": "other", "Expect": "100-continue", ":authority": "evil.example",
	} {
		r := call(t, set, "http_get", tools.Call{}, map[string]any{"url": url, "headers": map[string]string{name: value}})
		expect(t, r, messages.CodeInvalidInput, `"headers" `)
	}
	many := map[string]string{}
	for i := range 65 {
		many[fmt.Sprintf("X-%d", i)] = "a"
	}
	expect(t, call(t, set, "http_get", tools.Call{}, map[string]any{"url": url, "headers": many}), messages.CodeInvalidInput, "more than 64")
	expect(t, call(t, set, "http_get", tools.Call{}, map[string]any{"url": url, "headers": map[string]string{"X-A": "1", "x-a": "2"}}), messages.CodeInvalidInput, "holds X-A twice")
	expect(t, call(t, set, "http_get", tools.Call{}, map[string]any{"url": url, "credential": "tracker", "headers": map[string]string{"Range": "bytes=0-3"}}), messages.CodeInvalidInput, "must not hold Range")
}

// Attack 103: a connection that was allowed is not there for the next request, which is judged by itself.
func TestAttack103NoConnectionIsKept(t *testing.T) {
	from := make(chan string, 9)
	url, host := serve(t, func(_ http.ResponseWriter, r *http.Request) { from <- r.RemoteAddr })
	set := box(t, local(host), nil)
	expect(t, get(t, set, url), "", "HTTP 200")
	expect(t, get(t, set, url), "", "HTTP 200")
	if a, b := <-from, <-from; a == b {
		t.Errorf("both requests came from %s", a)
	}
	revoked := tools.Call{Grants: messages.Grants{Hosts: []string{"other.example"}}}
	expect(t, call(t, set, "http_get", revoked, map[string]any{"url": url}), messages.CodePolicy, "is not in the agent's grants")
	if len(from) != 0 {
		t.Error("a third request arrived")
	}
}

// Attack 104: data may go to a listed host in a query; it is bounded, and it is in the call's arguments for the audit.
func TestAttack104Query(t *testing.T) {
	url, host := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Query().Get("q")) })
	set := box(t, local(host), nil)
	expect(t, get(t, set, url+"/?q=some-data"), "", "\n\nsome-data")
	expect(t, get(t, set, url+"/?q="+strings.Repeat("a", 8<<10)), messages.CodeInvalidInput, "longer than 8192 bytes")
}
