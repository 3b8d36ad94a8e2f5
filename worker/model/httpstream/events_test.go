package httpstream_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// body answers every request, without a network.
type body struct{ io.Reader }

func (b body) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(b), Request: r}, nil
}

// open makes a call that is answered with what r reads.
func open(t *testing.T, r io.Reader, c httpstream.Config) *httpstream.Call {
	t.Helper()
	c.Transport = body{r}
	call := httpstream.New(c).Call(t.Context(), nil)
	t.Cleanup(func() { _ = call.Close() })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://host/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := call.Do(req); err != nil {
		t.Fatal(err)
	}
	return call
}

// read gives the events of a stream as name=data, and a mark on one that the stream ended with.
func read(t *testing.T, r io.Reader, c httpstream.Config) (got []string, err error) {
	t.Helper()
	call := open(t, r, c)
	events, whole, err := call.Answer()
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, call.Failure(err)
	case whole != nil:
		return []string{"whole=" + string(whole)}, nil
	}
	for {
		ev, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return got, nil
		case err != nil:
			return got, call.Failure(err)
		}
		s := ev.Name + "=" + string(ev.Data)
		if ev.Last {
			s += "!"
		}
		got = append(got, s)
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 9000)
	for name, tt := range map[string]struct {
		in      string
		want    []string
		lenient []string // nil: the same
	}{
		"LF":                      {"data: a\n\ndata: b\n\n", []string{"=a", "=b"}, nil},
		"CR LF":                   {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"=a", "=b"}, nil},
		"CR":                      {"data: a\r\rdata: b\r\r", []string{"=a", "=b"}, nil},
		"all of them":             {"data: a\r\ndata: b\n\rdata: c\n\r\n", []string{"=a\nb", "=c"}, nil},
		"a name":                  {"event: n\ndata: a\n\ndata: b\n\n", []string{"n=a", "=b"}, nil},
		"a name without data":     {"event: n\n\ndata: b\n\n", []string{"=b"}, nil},
		"no space":                {"event:n\ndata:a\n\n", []string{"n=a"}, nil},
		"comments and other":      {": hi\nid: 7\nretry: 1\ndata: a\n\n", []string{"=a"}, nil},
		"empty data":              {"data:\n\n: x\n\ndata: : ping\n\ndata: a\n\n", []string{"=a"}, nil},
		"no blank line":           {"data: a", []string{"=a!"}, nil},
		"no blank line after LF":  {"data: a\n", []string{"=a!"}, nil},
		"a byte order mark":       {"\xef\xbb\xbf\r\ndata: a\n\n", []string{"=a"}, nil},
		"data on several lines":   {"data: {\ndata: }\n\n", []string{"={\n}"}, nil},
		"longer than buffers":     {"data: " + long + "\n\ndata: " + long + "\ndata: b\n\n", []string{"=" + long, "=" + long + "\nb"}, nil},
		"nothing":                 {"", nil, nil},
		"white space":             {" \n\n", nil, nil},
		"JSON":                    {` {"a":1}`, []string{`whole={"a":1}`}, nil},
		"a web page":              {"<html>", []string{"whole=<html>"}, nil},
		"JSON without blank line": {"data: {}\ndata: 7\ndata: [DONE]\ndata: a\n\n", []string{"={}\n7\n[DONE]\na"}, []string{"={}", "=7", "=[DONE]", "=a"}},
		"JSON without data":       {"data: a\n\n{\n}\n\n", []string{"=a"}, []string{"=a", "={\n}"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, lenient := range []bool{false, true} {
				want := tt.want
				if lenient && tt.lenient != nil {
					want = tt.lenient
				}
				for kind, r := range map[string]io.Reader{
					"whole": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
				} {
					got, err := read(t, r, httpstream.Config{Lenient: lenient})
					if diff := cmp.Diff(want, got); diff != "" || err != nil {
						t.Errorf("%s, lenient %v: %v, %s", kind, lenient, err, diff)
					}
				}
			}
		})
	}
}

func TestWhatIsNoStream(t *testing.T) {
	long := strings.Repeat("x", 101)
	for name, tt := range map[string]struct {
		in     string
		class  model.Class
		detail string
	}{
		"text":                   {"upstream error\n", model.ModelOutput, "the answer is not an event stream: upstream error"},
		"text after a comment":   {": hi\n\nupstream error", model.ModelOutput, "the answer is not an event stream: upstream error"},
		"half of JSON":           {`{"a":`, model.Truncated, "cut within its JSON"},
		"a line":                 {"data: " + long + "\n\n", model.ReplyTooLarge, "a line of the answer is larger than 100 bytes"},
		"a line without an end":  {long + long, model.ReplyTooLarge, "a line of the answer is larger than 100 bytes"},
		"an event of many lines": {strings.Repeat("data: [\n", 60), model.ReplyTooLarge, "an event of the answer is larger than 100 bytes"},
		"an answer in one piece": {`{"a":"` + long + `"}`, model.ReplyTooLarge, "the reply is larger than 100 bytes"},
		"a stream":               {strings.Repeat(": wait\n\n", 200), model.ReplyTooLarge, "the reply is larger than 1000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, strings.NewReader(tt.in), httpstream.Config{Endpoint: httpstream.Endpoint{MaxLine: 100, MaxReply: 1000}})
			e, ok := errors.AsType[*model.Error](err)
			if !ok || e.Class != tt.class || !strings.Contains(e.Detail, tt.detail) || e.Status != http.StatusOK {
				t.Errorf("got %v, want %s: %s", err, tt.class, tt.detail)
			}
		})
	}
}

// An event is there once its blank line has begun: a server may be silent after a CR that an LF could follow.
func TestAnEventEndsWithItsCR(t *testing.T) {
	in, out := io.Pipe()
	defer func() { _ = out.Close() }()
	go func() { _, _ = io.WriteString(out, "data: a\r\n\r") }()
	events, _, err := open(t, in, httpstream.Config{}).Answer()
	if err != nil {
		t.Fatal(err)
	}
	if ev, err := events.Next(); string(ev.Data) != "a" || err != nil {
		t.Errorf("%q, %v", ev.Data, err)
	}
}

// Data on one line is not copied, and the buffer of a large event on several lines is not kept.
func BenchmarkEvents(b *testing.B) {
	for name, event := range map[string]string{
		"one line":      "event: n\ndata: " + strings.Repeat("x", 300) + "\n\n",
		"several lines": "data: " + strings.Repeat("x", 150) + "\ndata: " + strings.Repeat("x", 150) + "\n\n",
	} {
		b.Run(name, func(b *testing.B) {
			const many = 1000
			stream := strings.Repeat(event, many)
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			for done := 0; done < b.N; done += many {
				call := httpstream.New(httpstream.Config{Endpoint: httpstream.Endpoint{Transport: body{strings.NewReader(stream)}}}).Call(b.Context(), nil)
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://host/", http.NoBody)
				if err != nil {
					b.Fatal(err)
				}
				if err := call.Do(req); err != nil {
					b.Fatal(err)
				}
				events, _, err := call.Answer()
				for n := 0; err == nil; n++ {
					if _, err = events.Next(); err != nil && n != many {
						b.Fatal(n, err)
					}
				}
				_ = call.Close()
			}
		})
	}
}
