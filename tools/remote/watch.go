package remote

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// Service is the name of the micro services whose endpoints are tools.
	Service = "longshore-tools"
	// MetadataKey is the key of an endpoint's metadata that holds the definition of its tool as JSON.
	MetadataKey = "longshore.tool"
	// Prefix and the name of a tool are the subject of its calls.
	Prefix = "tools."

	infoSubject = "$SRV.INFO." + Service
)

const (
	lookEvery = 3 * time.Second
	// A program that is silent this often is lost. Answers may be late on a busy machine.
	maxMissed    = 2
	maxAnswers   = 256 // programs of one look
	maxEndpoints = 256 // of a program
	maxStrangers = 256 // tools that nothing takes, to be told once each
)

// info is the part of a micro service's answer that counts. Programs say more.
type info struct {
	Name      string `json:"name"`
	Endpoints []struct {
		Subject    string            `json:"subject"`
		QueueGroup string            `json:"queue_group"` //nolint:tagliatelle // as micro services name it
		Metadata   map[string]string `json:"metadata"`
	} `json:"endpoints"`
}

// watch knows which tools are served. One goroutine looks.
type watch struct {
	nc        *nats.Conn
	every     time.Duration
	log       *slog.Logger
	tools     map[string]*tool
	strangers map[string]bool
}

func (w *watch) run(ctx context.Context) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			w.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// seen is what one look shows of a tool.
type seen struct {
	programs int
	groups   map[string]bool
	other    bool // one defines it in another way
}

// look asks all programs once what they serve.
func (w *watch) look(ctx context.Context) {
	found, none, ok := w.ask(ctx)
	if !ok {
		return // nothing can be known, and no call can be made
	}
	for _, name := range slices.Sorted(maps.Keys(w.tools)) {
		t := w.tools[name]
		s := found[name]
		switch {
		case s == nil:
			if missed := t.missed.Add(1); none || missed >= maxMissed {
				w.set(ctx, t, lost)
			}
			continue
		case s.other:
			w.set(ctx, t, changed)
		case len(s.groups) > 1 || s.groups[""]:
			w.set(ctx, t, ambiguous)
		default:
			w.set(ctx, t, served)
		}
		t.missed.Store(0)
	}
}

func (w *watch) set(ctx context.Context, t *tool, now standing) {
	if was := standing(t.standing.Swap(int32(now))); was != now {
		level := slog.LevelInfo
		if now == changed || now == ambiguous {
			level = slog.LevelWarn
		}
		w.log.LogAttrs(ctx, level, "a tool that other programs serve has changed", slog.String("tool", t.def.Name), slog.String("now", now.String()))
	}
}

// ask gathers the answers of programs; none says that there is certainly no program.
func (w *watch) ask(ctx context.Context) (found map[string]*seen, none, ok bool) {
	sub, err := request(w.nc, nats.NewMsg(infoSubject), maxAnswers, 8<<20)
	if err != nil {
		return nil, false, false
	}
	defer func() { _ = sub.Unsubscribe() }()
	ctx, stop := context.WithTimeout(ctx, w.every/3)
	defer stop()
	found = map[string]*seen{}
	for range maxAnswers {
		m, err := sub.NextMsgWithContext(ctx)
		if errors.Is(err, nats.ErrNoResponders) {
			return found, true, true
		}
		if err != nil {
			break
		}
		var i info
		if json.Unmarshal(m.Data, &i) != nil || i.Name != Service || len(i.Endpoints) > maxEndpoints {
			continue
		}
		for _, e := range i.Endpoints {
			if definition, ok := e.Metadata[MetadataKey]; ok {
				w.learn(ctx, found, e.Subject, e.QueueGroup, definition)
			}
		}
	}
	return found, false, true
}

// learn takes one endpoint of a program.
func (w *watch) learn(ctx context.Context, found map[string]*seen, subject, group, definition string) {
	name := nameOf(definition)
	if name == "" || subject != Prefix+name {
		return // calls would not reach it
	}
	t := w.tools[name]
	if t == nil {
		if !w.strangers[name] && len(w.strangers) < maxStrangers {
			w.strangers[name] = true
			w.log.LogAttrs(ctx, slog.LevelInfo, "a tool is served that the operator's file does not take", slog.String("tool", name))
		}
		return
	}
	s := found[name]
	if s == nil {
		s = &seen{groups: map[string]bool{}}
		found[name] = s
	}
	s.programs++
	s.groups[group] = true
	s.other = s.other || !t.def.is(definition)
}
