//go:build unix

package fleet_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

// secret is a planted value, in the forms that are looked for.
type secret struct{ forms map[string][]byte }

func newSecret(value string) *secret {
	s := &secret{map[string][]byte{"it": []byte(value)}}
	for before := range 3 { // base64 depends on where a value begins in a group of three bytes
		whole := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("-", before) + value))
		s.forms[fmt.Sprintf("its base64 after %d bytes", before)] = []byte(whole[4 : len(whole)-4])
	}
	return s
}

// absent checks that the secret is nowhere in data.
func (s *secret) absent(t *testing.T, where string, data []byte) {
	t.Helper()
	for name, form := range s.forms {
		if i := bytes.Index(data, form); i >= 0 {
			t.Errorf("%s holds %s: …%q…", where, name, data[max(0, i-80):min(len(data), i+len(form)+80)])
		}
	}
}

func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	key := "sk-planted-" + rand.Text()
	planted := newSecret(key)
	w := open(t, shortAckWait, func(c *modelCall) reply {
		got := strings.TrimPrefix(c.Auth, "Bearer ")
		all := fmt.Sprintf("key %s header %s basic %s.", got, c.Auth, base64.StdEncoding.EncodeToString([]byte("user:"+got)))
		switch {
		case c.Task == "error":
			return reply{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: ` + all + `"}}`}
		case c.Task == "reply" || c.Turn == 2:
			return reply{Text: all}
		case c.Turn == 0:
			return reply{Text: all, Tool: "write_file", Args: map[string]string{"filePath": "dir/" + got + ".txt", "content": all}}
		default:
			return reply{Tool: "read_file", Args: map[string]string{"filePath": all}} // an error that shows its argument
		}
	})
	worker := w.worker("first", append(w.model.env(key), "LONGSHORE_LOG_LEVEL=debug")...)
	var runs []messages.Ref
	for _, task := range []string{"reply", "error", "file"} {
		run := w.submit(task)
		runs = append(runs, run)
		g := w.watch(run)
		r := g.end()
		planted.absent(t, "the result of "+task, []byte(fmt.Sprintf("%+v %v", r, r.Error)))
		if said := fmt.Sprintf("%v %v", r.Result, r.Error); !strings.Contains(said, "[redacted]") {
			t.Errorf("%s: the model's echo is not in the result: %s", task, said)
		}
	}
	out := spawn(t, "result", []string{"NATS_URL=" + w.nats}, binary, "result", runs[2].Run, "-o", "json")
	out.wait()
	planted.absent(t, "the output of a command", out.out.Bytes())

	for _, run := range runs { // they are among the streams
		redacted := 0
		for e, err := range w.client.Runs().Logs(t.Context(), run, dispatcher.LogOptions{Follow: true}) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(fmt.Sprint(e.Data), "[redacted]") {
				redacted++
			}
		}
		if run != runs[0] && redacted == 0 {
			t.Errorf("no log entry of %s shows where a secret was", run)
		}
	}
	if n := planted.streams(t, w); n < 10 {
		t.Errorf("%d messages in all streams: nothing was looked through", n)
	}
	redis := (&store{url: w.redis}).client(t)
	keys, err := redis.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) == 0 {
		t.Errorf("keys in Redis: %q, %v", keys, err)
	}
	for _, k := range keys {
		fields, err := redis.HGetAll(t.Context(), k).Result()
		if err != nil || len(fields) == 0 {
			t.Errorf("Redis key %s: %v, %v", k, fields, err)
		}
		planted.absent(t, "Redis key "+k, []byte(fmt.Sprint(k, fields)))
	}
	for _, p := range []*process{worker, w.dev} {
		p.signal(syscall.SIGTERM)
		if code := p.wait(); code != 0 {
			t.Errorf("%s ended with %d", p.name, code)
		}
		planted.absent(t, "the log of "+p.name, []byte(strings.Join(p.log(), "\n")))
		planted.absent(t, "the output of "+p.name, p.out.Bytes())
	}
	if n := planted.files(t, w.dir); n == 0 {
		t.Error("no file was written in a workspace")
	}
	if n := planted.files(t, w.data); n < 10 {
		t.Errorf("%d files in the store: nothing was looked through", n)
	}
}

// streams looks through every message of every stream and returns how many there are.
func (s *secret) streams(t *testing.T, w *town) (n int) {
	t.Helper()
	js, err := jetstream.New(w.nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		stream, err := js.Stream(ctx, info.Config.Name)
		if err != nil {
			t.Fatal(err)
		}
		for seq := info.State.FirstSeq; seq <= info.State.LastSeq && info.State.Msgs > 0; seq++ {
			m, err := stream.GetMsg(ctx, seq)
			if err != nil {
				continue // removed
			}
			n++
			s.absent(t, "stream "+info.Config.Name, []byte(fmt.Sprintf("%s %v %s", m.Subject, m.Header, m.Data)))
		}
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// files looks through a folder, names included, and returns how many files there are.
func (s *secret) files(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n++
		s.absent(t, "the name of a file", []byte(path))
		s.absent(t, "file "+path, data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
