package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
)

// protocol is asked for instead of the newest version: with that the library keeps answers of servers without a bound, and
// does without sessions, whose loss would go unnoticed.
const protocol = "2025-11-25"

const (
	maxTools = 256
	maxPages = 64 // of a list; more is a cursor that leads nowhere
)

// session is a connection to a server that shook hands.
type session struct {
	sdk   *sdk.ClientSession
	conn  func()        // breaks the connection
	done  func()        // waits for what else belongs to it, such as a process
	ended chan struct{} // closed when the session is over
	err   error         // why, once ended
	news  chan struct{} // the server says that its tools changed

	mu       sync.Mutex
	hashes   map[string]string // of what the server defines, by name
	refused  map[string]string // names of tools that cannot be offered, and why
	found    []*sdk.Tool
	troubles map[string]string // of tools that are pinned: why they are disabled
}

// transport is how a session reaches its server: conn breaks it at once, done waits for what belongs to it.
type transport struct {
	sdk.Transport

	conn, done func()
}

// connect opens a session and lists the tools.
func (s *server) connect(ctx context.Context) (*session, error) {
	t, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	n := &session{conn: t.conn, done: t.done, ended: make(chan struct{}), news: make(chan struct{}, 1)}
	client := sdk.NewClient(&sdk.Implementation{Name: "longshore", Version: s.deps.Version}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{}, // no roots, no sampling, no elicitation
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case n.news <- struct{}{}:
			default: // it is known already
			}
		},
	})
	client.AddReceivingMiddleware(refuse)
	limited, stop := context.WithTimeout(ctx, connectTimeout)
	defer stop()
	breaks := context.AfterFunc(limited, n.conn) // the library waits for some answers without a deadline
	n.sdk, err = client.Connect(limited, t, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
	if !breaks() && err == nil {
		err = context.Cause(limited)
	}
	if err != nil {
		n.conn()
		if n.sdk != nil {
			_ = n.sdk.Wait()
		}
		n.done()
		return nil, fmt.Errorf("connect: %w", err)
	}
	go func() {
		n.err = n.sdk.Wait()
		close(n.ended)
	}()
	switch got := n.sdk.InitializeResult().ProtocolVersion; {
	case got > protocol:
		err = fmt.Errorf("the server insists on version %s of the protocol, not %s", line(got, 32), protocol)
	default:
		err = n.list(limited)
	}
	if err != nil {
		n.close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	return n, nil
}

// refuse answers what servers may not ask for.
func refuse(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case "roots/list", "sampling/createMessage", "elicitation/create":
			return nil, fmt.Errorf("%s is not offered here", method)
		default:
			return next(ctx, method, req)
		}
	}
}

// close ends the session and waits for it.
func (n *session) close() {
	n.conn()
	<-n.ended
	n.done()
}

func (n *session) over() bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}

// reason is why an ended session ended.
func (n *session) reason() error {
	if n.err != nil {
		return fmt.Errorf("the session ended: %w", n.err)
	}
	return errors.New("the session ended: the server closed it")
}

// list asks for all tools.
func (n *session) list(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, connectTimeout)
	defer stop()
	if caps := n.sdk.InitializeResult().Capabilities; caps == nil || caps.Tools == nil {
		n.learn(nil)
		return nil
	}
	var all []*sdk.Tool
	params := &sdk.ListToolsParams{}
	for range maxPages {
		res, err := n.sdk.ListTools(ctx, params)
		if err != nil {
			return fmt.Errorf("list tools: %w", err)
		}
		all = append(all, slices.DeleteFunc(res.Tools, func(t *sdk.Tool) bool { return t == nil })...)
		if len(all) > maxTools {
			return fmt.Errorf("list tools: the server has more than %d", maxTools)
		}
		if res.NextCursor == "" {
			n.learn(all)
			return nil
		}
		params = &sdk.ListToolsParams{Cursor: res.NextCursor}
	}
	return fmt.Errorf("list tools: the list has more than %d pages", maxPages)
}

// learn keeps what a list says. A name that is listed twice is refused, and so are two that lead to one name here.
func (n *session) learn(all []*sdk.Tool) {
	hashes, refused, told := map[string]string{}, map[string]string{}, map[string]string{}
	for _, t := range all {
		if len(t.Name) > maxToolName || tools.Plain(t.Name) != t.Name {
			refused[strict.Shown(t.Name)] = "its name is too long or holds hidden characters"
			continue
		}
		if _, twice := hashes[t.Name]; twice {
			refused[t.Name] = "the server lists it twice"
			continue
		}
		h, err := hash(t)
		if err != nil {
			refused[t.Name] = "its definition cannot be encoded"
			continue
		}
		hashes[t.Name] = h
		name, err := toldName("", t.Name)
		if err != nil {
			continue // which define says
		}
		if other, taken := told[name]; taken {
			refused[t.Name] = "its name is told to models as that of " + other
			refused[other] = "its name is told to models as that of " + t.Name
		}
		told[name] = t.Name
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hashes, n.refused, n.found = hashes, refused, all
}

func (n *session) definitions() (hashes, refused map[string]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hashes, n.refused
}

func (n *session) problems() map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.troubles
}

func (n *session) setProblems(now map[string]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.troubles = now
}

// grace is how long a process has to end by itself at each stage, and a server to hear that a session is over.
const grace = 2 * time.Second
