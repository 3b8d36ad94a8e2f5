package api

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// Access says who may ask for what. Without one, any caller may ask for everything, and for any tenant.
type Access struct {
	Authenticator auth.Authenticator
	Denials       *auth.Denials
	// Recheck is how often a token is looked at again during its request; default 10 s.
	Recheck time.Duration
	Cookies Cookies // of browsers that sign in; nil: none may

	failures auth.Failures
	origins  http.CrossOriginProtection
}

const defaultRecheck = 10 * time.Second

// errRevoked ends the open requests of a caller whose token is no longer valid.
var errRevoked = errors.New("the token is no longer valid")

// remote is the address that a request comes from; not valid when that cannot be read.
func remote(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// bearer is the token of a request; empty when it has none.
func bearer(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		scheme, token, _ := strings.Cut(values[0], " ")
		if token = strings.TrimSpace(token); strings.EqualFold(scheme, "Bearer") && token != "" && !strings.ContainsAny(token, " ,") {
			return token, nil
		}
		return "", unauthenticated("the header Authorization must be: Bearer, and an API key or a JWT")
	default:
		return "", unauthenticated("there are two headers Authorization")
	}
}

func unauthenticated(why string) *messages.Problem {
	return problemf(http.StatusUnauthorized, messages.CodeUnauthenticated, why)
}

func forbidden(why string) *messages.Problem {
	return problemf(http.StatusForbidden, messages.CodeForbidden, why)
}

// who is the principal of a request. An error is a *messages.Problem.
func (s *Access) who(r *http.Request) (*auth.Principal, error) {
	token, err := s.token(r)
	if err != nil {
		return nil, err
	}
	if token == "" {
		return nil, unauthenticated("this needs an API key or a JWT: Authorization: Bearer …")
	}
	from := remote(r)
	cheap := s.failures.Wait(from, time.Now()) > 0
	p, err := s.Authenticator.Authenticate(r.Context(), token, cheap)
	switch {
	case err == nil:
		return p, nil
	case !errors.Is(err, auth.ErrUnknown):
		return nil, err
	}
	wait := s.failures.Add(from, time.Now())
	if !cheap {
		return nil, unauthenticated(err.Error())
	}
	tooMany := problemf(http.StatusTooManyRequests, messages.CodeRateLimited, "too many tokens that are not valid came from this address")
	tooMany.RetryAfter = max(1, int(math.Ceil(wait.Seconds())))
	return nil, tooMany
}

// admit identifies the caller, and refuses one without permission. Without Access every caller is admitted.
func (q *query) admit(needs control.Permission) error {
	s := q.api.cfg.Access
	if s == nil {
		return nil
	}
	var err error
	if q.who, err = s.who(q.r); err != nil {
		return err
	}
	if !q.who.May(needs) {
		return forbidden("this needs " + needText(needs))
	}
	_, err = q.tenant()
	return err
}

// forAll refuses who may do an operation for one tenant only.
func (q *query) forAll() error {
	needs := control.OperateFleet
	if q.r.Method == http.MethodGet {
		needs = control.ReadFleet
	}
	if q.who == nil || q.who.May(needs) {
		return nil
	}
	return forbidden("this needs " + needText(needs))
}

// needText says which roles a permission is with.
func needText(p control.Permission) string {
	roles := p.Roles()
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	last := len(names) - 1
	text := "the role " + names[0]
	if last > 0 {
		text = "one of the roles " + strings.Join(names[:last], ", ") + " or " + names[last]
	}
	if p.FleetWide() {
		text += ", for all tenants"
	}
	return text
}

// tenantOf checks the tenant that a request names against the caller's. An empty one means the caller's own.
func tenantOf(who *auth.Principal, named string) (string, error) {
	switch {
	case who == nil || who.AllTenants():
		if named == "" {
			return messages.DefaultTenant, nil
		}
		return named, nil
	case named == "" || named == who.Tenant:
		return who.Tenant, nil
	default:
		return "", forbidden("this is not allowed for another tenant")
	}
}

// tenantIn is the tenant that a task names itself, "" for none.
func tenantIn(data []byte) string {
	var t struct {
		Tenant string `json:"tenant"`
	}
	_ = json.Unmarshal(data, &t) // it has been read strictly
	return t.Tenant
}

// by is who makes a change: the caller if it is known, else the name that the request gives.
func (q *query) by(says string) string {
	if q.who != nil {
		return q.who.String()
	}
	return says
}

// called is a context that says who makes the request, for what is asked of the dispatchers in his name.
func (q *query) called(ctx context.Context) context.Context {
	c := control.Caller{Who: q.by(""), TextsOnly: q.who != nil && !q.who.May(control.Grant)}
	if from := remote(q.r); from.IsValid() {
		c.Remote = from.String()
	}
	return dispatcher.WithCaller(ctx, c)
}

// audit tells of a refusal.
func (q *query) audit(p *messages.Problem) {
	s := q.api.cfg.Access
	denied := p.Code == messages.CodeUnauthenticated || p.Code == messages.CodeForbidden || p.Status == http.StatusTooManyRequests && q.who == nil
	if s == nil || s.Denials == nil || !denied {
		return
	}
	tenant := messages.DefaultTenant
	d := control.AuthDenied{Code: p.Code, Reason: p.Detail, Operation: q.op.id}
	if from := remote(q.r); from.IsValid() {
		d.Remote = from.String()
	}
	if asked := q.r.Header.Get(control.HeaderTenant); strict.ValidToken(asked) {
		d.Tenant = asked
	}
	if q.who != nil {
		d.Who = q.who.String()
		if !q.who.AllTenants() {
			tenant = q.who.Tenant
		}
	}
	if d.Tenant == tenant {
		d.Tenant = ""
	}
	s.Denials.Tell(tenant, d)
}

// whileKnown is a context for a request that takes long: it ends when the caller's token is no longer valid. The
// caller must call done.
func (q *query) whileKnown(ctx context.Context) (known context.Context, done func()) {
	s := q.api.cfg.Access
	if s == nil {
		return ctx, func() {}
	}
	every := s.Recheck
	if every == 0 {
		every = defaultRecheck
	}
	token, _ := s.token(q.r) // it was read before
	ctx, cancel := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p, err := s.Authenticator.Authenticate(ctx, token, false)
				if errors.Is(err, auth.ErrUnknown) || err == nil && (!p.May(q.op.needs) || p.Tenant != q.who.Tenant) {
					cancel(errRevoked)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return ctx, func() {
		cancel(nil)
		looking.Wait()
	}
}

// Guard serves h, such as metrics, to those who have the permission. Without Access all have it, and the request must be for
// a known name: no web page reads metrics through the browser of a user.
func (a *API) Guard(what string, needs control.Permission, h http.Handler) http.Handler {
	op := &operation{id: what, needs: needs}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &query{api: a, op: op, w: w, r: r}
		if a.cfg.Access == nil {
			if p := a.stranger(r); p != nil {
				writeProblem(w, p)
				return
			}
		}
		if err := q.admit(needs); err != nil {
			a.fail(r.Context(), q, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}
