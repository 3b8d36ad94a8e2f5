package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// operation is one thing that can be asked for. The same table routes requests and describes them.
type operation struct {
	method, path string
	id           string // of the OpenAPI document
	tag          string
	summary      string
	text         string // more about it
	query        []control.Parameter
	headers      []control.Parameter
	body         any // a value of the type of the body; nil: it has none
	optional     bool
	reply        any // a value of the type of the reply
	status       int // of success; default 200
	also         int // another status of success, with a reply of another kind
	waits        bool
	answer       func(ctx context.Context, q *query) (any, error)
	stream       func(w http.ResponseWriter, q *query) error // instead of answer, or with stream=true; nothing may be written before an error
	media        string                                      // of a stream
	problem      func(p *messages.Problem) any               // what stands for a problem here; nil: itself
	takes        string                                      // media type of a body that is a stream
	needs        control.Permission                          // of the caller, where it is checked
	failures     []control.Failure                           // that the document names
}

// replyOf is an answer with another status or with headers.
type replyOf struct {
	status int
	header http.Header
	body   any
}

// long reports whether a request may continue after its body has been read, for as long as it has something to wait for.
func (op *operation) long() bool { return op.waits || op.stream != nil }

// serve makes an operation a handler.
func (a *API) serve(op operation) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &query{api: a, op: &op, w: w, r: r}
		if err := q.begin(); err != nil {
			return // the connection is gone
		}
		if err := q.admit(op.needs); err != nil {
			a.fail(r.Context(), q, err)
			return
		}
		if err := q.check(); err != nil {
			q.refuse(problemOf(err))
			return
		}
		if op.long() && op.body == nil && op.takes == "" {
			if err := q.body.drain(w); err != nil {
				a.fail(r.Context(), q, err)
				return
			}
		}
		ctx := q.called(r.Context())
		q.r = r.WithContext(ctx)
		if op.long() {
			known, done := q.whileKnown(ctx)
			defer done()
			ctx, q.r = known, r.WithContext(known)
		} else {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, requestTimeout)
			defer cancel()
		}
		streams := op.stream != nil
		if streams && op.answer != nil {
			var err error
			if streams, err = q.flag("stream"); err != nil {
				a.fail(ctx, q, err)
				return
			}
		}
		if streams {
			if err := op.stream(w, q); err != nil {
				a.fail(ctx, q, err)
			}
			return
		}
		reply, err := op.answer(ctx, q)
		if err != nil {
			a.fail(ctx, q, err)
			return
		}
		a.write(ctx, w, q, reply)
	})
}

// begin sets the deadlines of a request. One that waits has none for its answer until there is one.
func (q *query) begin() (err error) {
	rc := http.NewResponseController(q.w)
	if q.body, err = receive(q.r, rc, q.op, q.api.cfg.BodyTimeout); err != nil {
		return err
	}
	writing := time.Time{}
	if !q.op.long() {
		writing = time.Now().Add(q.api.cfg.BodyTimeout + requestTimeout + bodyTimeout)
	}
	return writeBy(rc, writing)
}

// answering sets the deadlines for an answer that is not a stream.
func (q *query) answering() {
	_ = writeBy(http.NewResponseController(q.w), time.Now().Add(bodyTimeout)) // where the connection is gone, writing says so
	if q.body != nil {
		q.body.answered(q.w, q.r)
	}
}

func writeBy(rc *http.ResponseController, at time.Time) error {
	if err := rc.SetWriteDeadline(at); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("set a deadline: %w", err)
	}
	return nil
}

func (a *API) fail(ctx context.Context, q *query, err error) {
	if errors.Is(context.Cause(ctx), errRevoked) {
		err = errRevoked
	}
	p := q.problemOf(err)
	q.audit(p)
	if p.Status >= http.StatusInternalServerError {
		a.cfg.Log.WarnContext(ctx, "answer a request", "operation", q.op.id, "status", p.Status, "err", err)
	}
	q.refuse(p)
}

// refuse answers with a problem, in the form that the operation has for it.
func (q *query) refuse(p *messages.Problem) {
	op, w := q.op, q.w
	q.answering()
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if op.problem == nil {
		writeProblem(w, p)
		return
	}
	retryAfter(w, p)
	writeProblemAs(w, p.Status, op.problem(p))
}

func (a *API) write(ctx context.Context, w http.ResponseWriter, q *query, reply any) {
	status := q.op.status
	if status == 0 {
		status = http.StatusOK
	}
	if r, ok := reply.(*replyOf); ok {
		maps.Copy(w.Header(), r.header)
		if r.status != 0 {
			status = r.status
		}
		reply = r.body
	}
	body, err := json.Marshal(reply)
	if err != nil {
		a.fail(ctx, q, err)
		return
	}
	q.answering()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// wrongMethod says what a path takes.
func wrongMethod(methods []string) http.HandlerFunc {
	allow := strings.Join(methods, ", ")
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allow)
		writeProblem(w, problemf(http.StatusMethodNotAllowed, "invalid_input", "this path takes "+allow))
	}
}
