//go:build unix

package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/queue"
)

// The NATS server publishes on behalf of clients: stored messages on the reply subject of a request, and republished messages
// where a stream's settings say. Only dispatchers may use either, and only they may publish on arbitrary reply subjects.
func TestPermissionsLendNoVoice(t *testing.T) {
	for _, user := range startGuarded(t).opts.Users {
		if user.Username == "dispatcher" || user.Username == observer || user.Username == insider {
			continue
		}
		if user.Permissions.Response != nil {
			t.Errorf("%s may publish wherever a message wants its answer", user.Username)
		}
		for _, grant := range user.Permissions.Publish.Allow {
			for _, voice := range []string{
				"$JS.API.DIRECT.GET.>", "$JS.API.STREAM.CREATE.*", "$JS.API.STREAM.UPDATE.*", "$JS.API.STREAM.RESTORE.*",
				"$JS.API.CONSUMER.DURABLE.CREATE.>",
			} {
				if server.SubjectsCollide(grant, voice) {
					t.Errorf("%s may publish %s, with which the server speaks for it", user.Username, grant)
				}
			}
		}
	}
}

// Each role has the server publish what the role has stored, in every way that its grants allow, on every subject that the
// fleet listens on or stores. Nothing of it is taken for a request, and none of it is stored where the role may not write.
func TestPermissionsAgainstBorrowedVoices(t *testing.T) {
	f := startGuardedFleet(t, guardedScript)
	f.work("worker")
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	id, err := f.client.Submit(ctx, messages.Task{Agent: "careful", Input: messages.TextInput("write when you may")})
	if err == nil {
		err = f.waits(ctx, dispatcher.Run(id), queue.ParkApproval)
	}
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := f.client.Approvals().List(ctx, messages.DefaultTenant, 0)
	if err != nil || len(waiting.Approvals) != 1 {
		t.Fatalf("%+v, %v", waiting, err)
	}
	approval := fmt.Appendf(nil, `{"id":%q,"call":%q,"by":"unknown"}`, id, waiting.Approvals[0].Call)
	key := []byte(`{"id":"mine0","tenant":"default","roles":["admin"],"name":"n","hash":"` + strings.Repeat("0", 64) + `"}`)
	admin, err := dispatcher.New(ctx, f.g.connect("admin"))
	if err != nil {
		t.Fatal(err)
	}
	workers, err := f.client.Fleet().Workers(ctx)
	if err != nil || len(workers) != 1 {
		t.Fatalf("%+v, %v", workers, err)
	}
	for _, user := range []string{"worker", "operator", "admin", "auditor"} {
		t.Run(user, func(t *testing.T) {
			r := newRogue(t, f.g, user)
			for _, body := range [][]byte{approval, key} {
				r.attack(ctx, body, []string{messages.DrainPrefix + workers[0].ID})
			}
		})
	}
	if still, err := f.client.Approvals().List(ctx, messages.DefaultTenant, 0); err != nil {
		t.Error(err)
	} else if diff := cmp.Diff(waiting, still); diff != "" {
		t.Errorf("the call no longer waits: %s", diff)
	}
	if keys, err := admin.Keys().List(ctx, ""); err != nil || len(keys.Keys) != 0 {
		t.Errorf("keys: %+v, %v", keys, err)
	}
	if now, err := f.client.Fleet().Workers(ctx); err != nil || len(now) != 1 || now[0].Draining {
		t.Errorf("workers: %+v, %v", now, err)
	}
}

// rogue is a user of the fleet's account who tries what he may.
type rogue struct {
	t      *testing.T
	nc     *nats.Conn
	allow  []string
	deny   []string
	heard  *nats.Subscription // all that is published in the account
	js     jetstream.JetStream
	stored []jetstream.StreamConfig
	made   int // consumers
}

func newRogue(t *testing.T, g *guarded, user string) *rogue {
	t.Helper()
	i := slices.IndexFunc(g.opts.Users, func(u *server.User) bool { return u.Username == user })
	may := g.opts.Users[i].Permissions
	js, err := jetstream.New(g.connect(observer))
	if err != nil {
		t.Fatal(err)
	}
	r := &rogue{t: t, nc: g.connect(user), allow: may.Publish.Allow, deny: may.Publish.Deny, js: js}
	list := r.js.ListStreams(t.Context())
	for s := range list.Info() {
		r.stored = append(r.stored, s.Config)
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	if r.heard, err = g.connect(observer).SubscribeSync(">"); err == nil {
		err = r.heard.SetPendingLimits(-1, -1)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range may.Subscribe.Allow {
		if _, err := r.nc.Subscribe(subject, func(*nats.Msg) {}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// may reports whether the role itself may publish on a subject.
func (r *rogue) may(subject string) bool {
	covers := func(grant string) bool { return server.SubjectsCollide(grant, subject) }
	return slices.ContainsFunc(r.allow, covers) && !slices.ContainsFunc(r.deny, covers)
}

// own are subjects outside of JetStream's on which the role may publish, one of each grant.
func (r *rogue) own() (out []string) {
	for _, grant := range r.allow {
		if subject := literal(grant); !strings.HasPrefix(grant, "$JS.") && r.may(subject) {
			out = append(out, subject)
		}
	}
	return out
}

// streamOf is the stream that stores a subject; empty: none does.
func (r *rogue) streamOf(subject string) string {
	for _, s := range r.stored {
		if slices.ContainsFunc(s.Subjects, func(of string) bool { return server.SubjectsCollide(of, subject) }) {
			return s.Name
		}
	}
	return ""
}

func literal(pattern string) string {
	return strings.NewReplacer("*", "evil", ">", "evil.x").Replace(pattern)
}

// targets are the subjects that something of the fleet listens on or stores and that the role may not publish on.
func (r *rogue) targets(more []string) (out []string) {
	out = append(out,
		"longshore.approve", "longshore.t.default.approve", "longshore.keys.create", "longshore.agents.apply", "longshore.workers.drain",
		"$KV.KEYS.mine0", "$KV.AGENTS.default", "$KV.PROMPTS.p", "$KV.QUOTAS.tenant.default", messages.StatusOfWorkers, "spill",
		"nudge.default.r", "queued.high.default", "live.default.r", "$JS.API.STREAM.PURGE.RUNS", "$JS.API.STREAM.DELETE.EVENTS",
	)
	out = append(out, more...)
	for _, s := range r.stored {
		for _, subject := range s.Subjects {
			out = append(out, literal(subject))
		}
	}
	return slices.DeleteFunc(out, r.may)
}

// attack stores a body wherever the role may, and asks the server in every way to publish it elsewhere.
func (r *rogue) attack(ctx context.Context, body []byte, more []string) {
	own, targets := r.own(), r.targets(more)
	for _, subject := range own {
		r.send(&nats.Msg{Subject: subject, Data: body})
	}
	for _, target := range targets {
		for _, subject := range own { // a subscriber could try to answer there
			if r.streamOf(subject) == "" {
				r.send(&nats.Msg{Subject: subject, Reply: target})
			}
		}
		r.flush()
		r.send(&nats.Msg{Subject: target, Reply: r.nc.NewInbox(), Data: body})
		for _, grant := range r.allow {
			for _, m := range r.ask(grant, target, own) {
				r.send(m)
			}
		}
		for _, subject := range own { // a stream that was made to publish what it stores
			if strings.HasPrefix(subject, "$O.") {
				r.send(&nats.Msg{Subject: subject, Data: body})
			}
		}
	}
	r.flush()
	r.hear(body)
	for _, target := range targets {
		name := r.streamOf(target)
		if name == "" {
			continue
		}
		stream, err := r.js.Stream(ctx, name)
		if err != nil {
			r.t.Fatal(err)
		}
		if m, err := stream.GetLastMsgForSubject(ctx, target); err == nil && string(m.Data) == string(body) {
			r.t.Errorf("%s has %s as %s", name, body, target)
		}
	}
}

// ask are requests of JetStream with a grant, to be answered, or to deliver, at a subject.
func (r *rogue) ask(grant, target string, own []string) (out []*nats.Msg) {
	request, ok := strings.CutPrefix(grant, "$JS.API.")
	if !ok {
		return nil
	}
	add := func(subject string, body any) {
		raw, err := json.Marshal(body)
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(out, &nats.Msg{Subject: "$JS.API." + subject, Reply: target, Data: raw})
	}
	last := func(stream, subject string) {
		for _, name := range own {
			if r.streamOf(name) == stream {
				add(subject, map[string]any{"last_by_subj": name})
			}
		}
	}
	t := strings.Split(request, ".")
	switch {
	case strings.HasPrefix(request, "DIRECT.GET."):
		for _, name := range own {
			if rest := "DIRECT.GET." + t[2] + "." + name; r.may("$JS.API." + rest) {
				out = append(out, &nats.Msg{Subject: "$JS.API." + rest, Reply: target})
			}
		}
		if r.may("$JS.API.DIRECT.GET." + t[2]) {
			last(t[2], "DIRECT.GET."+t[2])
		}
	case strings.HasPrefix(request, "STREAM.MSG.GET."):
		last(t[3], request)
	case strings.HasPrefix(request, "CONSUMER.CREATE."):
		if !strings.HasPrefix(target, "longshore.") && !strings.HasPrefix(target, "$KV.") && !strings.HasPrefix(target, "workers.") {
			return nil // from one stream into another and back it would never end
		}
		for _, headers := range []bool{false, true} {
			r.made++
			name := fmt.Sprintf("evil%d", r.made)
			config := map[string]any{"name": name, "deliver_subject": target, "deliver_policy": "all", "ack_policy": "none", "headers_only": headers}
			subject := "CONSUMER.CREATE." + t[2] + "." + name
			if len(t) > 4 {
				config["filter_subject"] = strings.Join(t[4:], ".")
				subject += "." + strings.Join(t[4:], ".")
			}
			add(subject, map[string]any{"stream_name": t[2], "config": config, "action": "create"})
		}
	case strings.HasPrefix(request, "CONSUMER.MSG.NEXT."):
		out = append(out, &nats.Msg{Subject: "$JS.API.CONSUMER.MSG.NEXT." + t[3] + "." + bus.ConsumerWorkers, Reply: target, Data: []byte("1")})
	case strings.HasPrefix(request, "STREAM.CREATE."):
		add(request, map[string]any{
			"name": t[2], "subjects": []string{"$O.AUDIT.>"}, "storage": "file", "republish": map[string]string{"src": ">", "dest": target},
		})
	case strings.HasPrefix(request, "STREAM.INFO."), strings.HasPrefix(request, "CONSUMER.INFO."), strings.HasPrefix(request, "CONSUMER.LIST."):
		out = append(out, &nats.Msg{Subject: "$JS.API." + literal(request), Reply: target})
	}
	return out
}

func (r *rogue) send(m *nats.Msg) {
	if err := r.nc.PublishMsg(m); err != nil {
		r.t.Fatal(err)
	}
}

// flush returns once the server has done what was asked of it, as far as it does that before it answers.
func (r *rogue) flush() {
	if err := r.nc.FlushTimeout(patience); err != nil {
		r.t.Fatal(err)
	}
}

// hear looks at all that was published meanwhile. What a consumer delivers has the subject under which it was stored, and
// who listens elsewhere sees that it is another.
func (r *rogue) hear(body []byte) {
	for {
		m, err := r.heard.NextMsg(settling)
		if err != nil {
			return
		}
		delivered := strings.HasPrefix(m.Reply, "$JS.ACK.")
		if string(m.Data) == string(body) && !delivered && !r.may(m.Subject) && !strings.HasPrefix(m.Subject, "_INBOX") {
			r.t.Errorf("%s is published on %s, with the answer at %q and the header %v", body, m.Subject, m.Reply, m.Header)
		}
	}
}

// settling is how long the account must be quiet until all is taken for published.
const settling = 300 * time.Millisecond
