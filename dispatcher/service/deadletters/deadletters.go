// Package deadletters answers the requests about tasks and webhooks that could not be worked.
package deadletters

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/longshore-run/longshore/dispatcher/service/admission"
	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/dispatcher/service/webhooks"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is what DeadLetters works with.
type Config struct {
	Store     *deadletters.Store
	Admission *admission.Admission
	Webhooks  *webhooks.Webhooks
}

// DeadLetters answers the requests about tasks and webhooks that could not be worked.
type DeadLetters struct{ cfg Config }

// New returns DeadLetters.
func New(cfg Config) *DeadLetters { return &DeadLetters{cfg} }

// maxDeadLooked bounds how many letters one request looks at, whatever fits.
const maxDeadLooked = 5000

// Handlers are the requests about dead letters.
func (dl *DeadLetters) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectDeadList:       request.Read(dl.listDead),
		control.SubjectDeadShow:       request.Read(dl.showDead),
		control.SubjectDeadRedrive:    request.Read(dl.redriveDead),
		control.SubjectDeadPurge:      request.Read(dl.purgeDead),
		control.SubjectDeadRedriveAll: request.Read(dl.redriveAllDead),
		control.SubjectDeadPurgeAll:   request.Read(dl.purgeAllDead),
	}
}

// eachDead calls do with the letters that fit, limit at most. Next is the letter to continue after, 0 at the end.
func (dl *DeadLetters) eachDead(ctx context.Context, req control.DeadListRequest, most int, do func(*deadletters.Letter) error) (next uint64, err error) {
	if err := req.Check(); err != nil {
		return 0, err
	}
	if req.Limit < 0 || req.Limit > most {
		return 0, &messages.FieldError{Field: "limit", Reason: fmt.Sprintf("must be 1 to %d", most)}
	}
	if req.Limit == 0 {
		req.Limit = most
	}
	looked, fit := 0, 0
	for d, err := range dl.cfg.Store.List(ctx, req.Tenant, req.After, req.Since) {
		if err != nil {
			return 0, err
		}
		if fit == req.Limit || looked == maxDeadLooked {
			return next, nil
		}
		looked, next = looked+1, d.Seq
		if !req.Fits(d.Of, &d.Dead) {
			continue
		}
		fit++
		if err := do(&d); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

func (dl *DeadLetters) listDead(ctx context.Context, req control.DeadListRequest) (any, error) {
	list := control.DeadList{Letters: []control.DeadLetter{}}
	var err error
	list.Next, err = dl.eachDead(ctx, req, control.MaxDeadList, func(d *deadletters.Letter) error {
		list.Letters = append(list.Letters, letterOf(d))
		return nil
	})
	return list, err
}

// letterOf is a letter without its body.
func letterOf(d *deadletters.Letter) control.DeadLetter {
	l := control.DeadLetter{
		Seq: d.Seq, Kind: d.Of.Kind, Tenant: d.Of.Tenant, Agent: d.Of.Agent, Error: d.Error, Subject: strict.Clip(d.Subject, maxDeadText),
		Attempts: d.Attempts, Time: d.Time, Size: len(d.Task),
	}
	l.Error.Message = strict.Clip(l.Error.Message, maxDeadText)
	switch d.Of.Kind {
	case control.DeadRun:
		l.Run = d.Of.Name
	case control.DeadWebhook:
		var j messages.WebhookJob
		if strict.Decode(d.Task, &j) != nil {
			break
		}
		l.Host = webhooks.Host(j.URL)
		if j.Of == messages.WebhookBatch {
			l.Batch = j.Name
		} else {
			l.Run = j.Name
		}
	case control.DeadMessage:
	}
	return l
}

// maxDeadText bounds what a list shows of a letter, in bytes.
const maxDeadText = 1024

// letter is the letter of a request.
func (dl *DeadLetters) letter(ctx context.Context, req *control.DeadRequest) (deadletters.Letter, error) {
	if err := req.Check(); err != nil {
		return deadletters.Letter{}, err
	}
	return dl.cfg.Store.Get(ctx, req.Tenant, req.Seq)
}

func (dl *DeadLetters) showDead(ctx context.Context, req control.DeadRequest) (any, error) {
	d, err := dl.letter(ctx, &req)
	if err != nil {
		return nil, err
	}
	l := letterOf(&d)
	if json.Valid(d.Task) {
		l.Task = d.Task
	} else {
		l.Raw = d.Task
	}
	return l, nil
}

func (dl *DeadLetters) purgeDead(ctx context.Context, req control.DeadRequest) (any, error) {
	d, err := dl.letter(ctx, &req)
	if err != nil {
		return nil, err
	}
	return letterOf(&d), dl.cfg.Store.Remove(ctx, d.Seq)
}

func (dl *DeadLetters) purgeAllDead(ctx context.Context, req control.DeadListRequest) (any, error) {
	var out control.DeadBulk
	var err error
	out.Next, err = dl.eachDead(ctx, req, control.MaxDeadBulk, func(d *deadletters.Letter) error {
		out.Purged = append(out.Purged, d.Seq)
		return dl.cfg.Store.Remove(ctx, d.Seq)
	})
	return out, err
}

func (dl *DeadLetters) redriveDead(ctx context.Context, req control.DeadRedrive) (any, error) {
	d, err := dl.letter(ctx, &req.DeadRequest)
	if err != nil {
		return nil, err
	}
	return dl.redrive(ctx, &d, &req)
}

// redriveAllDead sends letters again as they are. One that cannot be is named, and stays.
func (dl *DeadLetters) redriveAllDead(ctx context.Context, req control.DeadListRequest) (any, error) {
	var out control.DeadBulk
	var err error
	out.Next, err = dl.eachDead(ctx, req, control.MaxDeadBulk, func(d *deadletters.Letter) error {
		done, err := dl.redrive(ctx, d, &control.DeadRedrive{})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			out.Failed = append(out.Failed, control.DeadFailure{Seq: d.Seq, Error: *request.ProblemOf(control.Of(control.SubjectDeadRedrive), err)})
			return nil
		}
		out.Redriven = append(out.Redriven, done)
		return nil
	})
	return out, err
}

// redrive sends a letter again, and removes it once what it became is stored. A dispatcher that
// is killed in between, or does it at the same time as another, finds the same task under the same id.
func (dl *DeadLetters) redrive(ctx context.Context, d *deadletters.Letter, req *control.DeadRedrive) (control.DeadRedriven, error) {
	out := control.DeadRedriven{Seq: d.Seq, Kind: d.Of.Kind}
	var err error
	if d.Of.Kind == control.DeadWebhook {
		out.Tenant = d.Of.Tenant
		out.ID, err = dl.redriveWebhook(ctx, d, req)
	} else {
		var t *messages.Task
		if t, err = redriven(d, req); err == nil {
			t.By = cmp.Or(request.CallerOf(ctx).Who, t.By)
			out.Tenant, out.ID = t.Tenant, t.ID
			out.Duplicate, err = dl.cfg.Admission.Accept(ctx, t, false)
		}
	}
	if err != nil {
		return out, err
	}
	return out, dl.cfg.Store.Remove(ctx, d.Seq)
}

// redriveWebhook has a webhook delivered again, as the same delivery.
func (dl *DeadLetters) redriveWebhook(ctx context.Context, d *deadletters.Letter, req *control.DeadRedrive) (id string, err error) {
	if len(req.Task) > 0 || req.NewID != "" {
		return "", &messages.FieldError{Field: "task", Reason: "the letter is of a webhook, which is delivered again as it was"}
	}
	if err := dl.cfg.Webhooks.Enabled(); err != nil {
		return "", err
	}
	var j messages.WebhookJob
	if err := strict.Decode(d.Task, &j); err != nil {
		return "", err
	}
	if err := j.Check(); err != nil {
		return "", err
	}
	return j.ID, dl.cfg.Webhooks.Redeliver(ctx, &j, d.Seq)
}

// redriven is the task that a letter becomes. The run that died has ended, so the task is that of a new one, whose id
// belongs to the letter.
func redriven(d *deadletters.Letter, req *control.DeadRedrive) (*messages.Task, error) {
	body := d.Task
	if len(req.Task) > 0 {
		body = req.Task
	}
	t, err := messages.DecodeTask(body)
	if err != nil {
		return nil, err
	}
	if d.Of.Kind == control.DeadRun {
		if t.ID == d.Of.Name {
			t.ID = ""
		}
		if err := locate(t, body, d); err != nil {
			return nil, err
		}
	}
	switch {
	case req.NewID != "" && t.ID != "" && t.ID != req.NewID && len(req.Task) > 0:
		return nil, &messages.FieldError{Field: "newId", Reason: "is not the id of the task"}
	case req.NewID != "":
		t.ID = req.NewID
	case t.ID == "":
		sum := sha256.Sum256([]byte(d.Subject + "\x00" + d.Of.Tenant + "\x00" + string(d.Task)))
		t.ID = "redrive-" + hex.EncodeToString(sum[:16])
	}
	labels := map[string]string{}
	maps.Copy(labels, t.Labels)
	labels[control.LabelRedriven] = d.Of.Name
	t.Labels = labels
	return t, t.Validate()
}

// locate gives a task the tenant of its letter, and the priority that the letter came with unless it has its own.
func locate(t *messages.Task, body []byte, d *deadletters.Letter) error {
	var own struct {
		Tenant   string            `json:"tenant"`
		Priority messages.Priority `json:"priority"`
	}
	if err := json.Unmarshal(body, &own); err != nil { // it was a task a moment ago
		return fmt.Errorf("read task: %w", err)
	}
	if own.Tenant != "" && own.Tenant != d.Of.Tenant {
		return &messages.FieldError{Field: "tenant", Reason: "is not that of the dead letter"}
	}
	t.Tenant = d.Of.Tenant
	if p, _, ok := messages.ParseTaskSubject(d.Subject); ok && own.Priority == "" && !p.Wakes() {
		t.Priority = p
	}
	return nil
}
