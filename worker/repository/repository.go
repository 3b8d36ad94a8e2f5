// Package repository fetches the files of a commit from a git server, for the worker that begins a run.
//
// [New] makes a Client, and [Client.Fetch] is a firstfiles.Fetch. It calls the hosts alone that the operator listed, over HTTPS, at
// addresses that are public or listed themselves; it asks for one commit without its history, and checks all that it is sent by its
// hash. Nothing of a repository is ever run: there is no working copy, so there are no hooks, filters, submodules or configuration.
//
// A fetch has bounds of its own in time, bytes and files, and few are made at once. What it is sent is kept in a spool on the disk;
// memory does not grow with it.
package repository

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/egress"
	"github.com/longshore-run/longshore/messages/firstfiles"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools/credential"
	"github.com/longshore-run/longshore/tools/outbound"
	"github.com/longshore-run/longshore/worker/repository/pack"
)

// Config of a Client.
type Config struct {
	Hosts       []string // that may be called, as hosts.Parse reads them; none: repositories are off
	CA          []byte   // certificates in PEM that are trusted besides those of the system
	Credentials []Credential
	Store       *credential.Store // holds what Credentials name
	Dir         string            // for the spool of each fetch, which has no name there. It must exist when something is fetched
	Version     string            // of this program, for servers
	Wait        time.Duration     // for one fetch. Default 5 min
	Idle        time.Duration     // how long a server may be silent. Default 1 min
}

// Credential is one that a fetch may use.
type Credential struct {
	Tenant string // whose runs may use it; empty: those of all
	Name   string // in the store, which knows the hosts that it is for
}

const (
	defaultWait = 5 * time.Minute
	defaultIdle = time.Minute
	atOnce      = 4 // fetches
	// A commit may have more than the run is given of it, such as other folders, and deltas count beside what they make.
	spoolTimes = 4
)

// Client fetches. Safe for concurrent use.
type Client struct {
	cfg       Config
	hosts     hosts.List
	transport *http.Transport
	slots     chan struct{}
}

// New checks a configuration.
func New(cfg Config) (*Client, error) {
	listed, err := hosts.Parse(cfg.Hosts)
	if err != nil {
		return nil, err
	}
	for _, c := range cfg.Credentials {
		if !cfg.Store.Has(c.Name) {
			return nil, fmt.Errorf("%q %w of LONGSHORE_TOOLS", strict.Shown(c.Name), credential.ErrUnknown)
		}
	}
	if cfg.Wait <= 0 {
		cfg.Wait = defaultWait
	}
	if cfg.Idle <= 0 {
		cfg.Idle = defaultIdle
	}
	t := egress.Transport(guard(listed))
	if t.TLSClientConfig, err = trusting(cfg.CA); err != nil {
		return nil, err
	}
	t.DisableKeepAlives = true // each request dials anew, and the guard judges each
	t.ResponseHeaderTimeout = cfg.Idle
	return &Client{cfg, listed, t, make(chan struct{}, atOnce)}, nil
}

// trusting trusts certificates besides those of the system; nil: these alone.
func trusting(ca []byte) (*tls.Config, error) {
	if len(ca) == 0 {
		return nil, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the certificates of the system: %w", err)
	}
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("the CA certificates are not in PEM")
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}

// guard lets public addresses be dialled, and those that the operator listed.
func guard(listed hosts.List) egress.Guard {
	return func(_ string, at netip.AddrPort) error {
		if listed.ListsAddress(at) || egress.Public(at.Addr()) {
			return nil
		}
		return outbound.ErrAddress
	}
}

// check reports whether the operator lets the host of a repository be called.
func (c *Client) check(u *url.URL) error {
	wrong := func(format string, args ...any) error {
		return &messages.FieldError{Field: "url", Reason: fmt.Sprintf(format, args...)}
	}
	switch at := hosts.Endpoint(u); {
	case c.hosts.Empty():
		return wrong("repositories are off: the operator lists the hosts that may be called in LONGSHORE_GIT_HOSTS")
	case !c.hosts.Lists(at):
		return wrong("the host %s is not one that the operator listed in LONGSHORE_GIT_HOSTS", strict.Shown(at))
	}
	return nil
}

// Fetch is a firstfiles.Fetch. What may pass is a *firstfiles.FetchError.
func (c *Client) Fetch(ctx context.Context, run messages.Ref, from *messages.Repository, l firstfiles.Limits, keep func(*firstfiles.Tree) error) (err error) {
	u, err := url.Parse(from.URL)
	if err != nil { // it was checked
		return &messages.FieldError{Field: "url", Reason: "is no URL"}
	}
	if err := c.check(u); err != nil {
		return err
	}
	id, err := pack.ParseID(from.Commit)
	if err != nil {
		return &messages.FieldError{Field: "commit", Reason: "is no hash"}
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	spool, err := c.spool()
	if err != nil {
		return fmt.Errorf("make a spool for a repository: %w", err)
	}
	defer func() { err = errors.Join(err, spool.Close()) }()
	tree, err := c.tree(ctx, run, u, from, id, spool, l)
	if err != nil {
		return err
	}
	return keep(tree)
}

// spool is a file that is gone when it is closed, or when this process dies.
func (c *Client) spool() (*os.File, error) {
	f, err := os.CreateTemp(c.cfg.Dir, ".repository-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// tree fetches a commit into a spool and lists its files.
func (c *Client) tree(ctx context.Context, run messages.Ref, u *url.URL, from *messages.Repository, id pack.ID, spool *os.File, l firstfiles.Limits) (*firstfiles.Tree, error) {
	late := &firstfiles.FetchError{Field: "url", Reason: fmt.Sprintf("the repository could not be fetched within %v", c.cfg.Wait)}
	within, cancel := context.WithTimeoutCause(ctx, c.cfg.Wait, late)
	defer cancel()
	x := &exchange{client: c, tenant: run.Tenant, url: u}
	objects, err := x.fetch(within, id, spool, pack.Limits{Objects: spoolTimes * l.Files, Bytes: spoolTimes * l.Total})
	var listing *pack.Listing
	if err == nil {
		listing, err = objects.List(within, id, from.Path, spoolTimes*l.Files)
	}
	switch {
	case err == nil:
		return treeOf(listing), nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case within.Err() != nil:
		return nil, context.Cause(within)
	default:
		return nil, about(err, from)
	}
}

// about is an error of a pack as one of the repository.
func about(err error, from *messages.Repository) error {
	wrong := func(field, format string, args ...any) error {
		return &messages.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case errors.Is(err, pack.ErrTooLarge):
		return wrong("commit", "the commit %v: see LONGSHORE_WORKSPACE_FILES and LONGSHORE_WORKSPACE_BYTES", err)
	case errors.Is(err, pack.ErrTooMany):
		return wrong("commit", "the commit %v: see LONGSHORE_WORKSPACE_FILES", err)
	case errors.Is(err, pack.ErrNoCommit):
		return wrong("commit", "%v: give the hash of a commit. `git rev-parse %s^{commit}` prints it", err, from.Commit)
	case errors.Is(err, pack.ErrNoFolder):
		return wrong("path", "%s %v", strict.Shown(from.Path), err)
	case errors.Is(err, pack.ErrName), errors.Is(err, pack.ErrCollision):
		return wrong("commit", "the commit cannot be used: %v", err)
	case errors.Is(err, pack.ErrMalformed):
		return &firstfiles.FetchError{Field: "url", Reason: "what the server sends " + err.Error()}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &firstfiles.FetchError{Field: "url", Reason: "the server ended before all was sent"}
	default:
		return err
	}
}

// treeOf is a listing as the files of a run.
func treeOf(l *pack.Listing) *firstfiles.Tree {
	t := &firstfiles.Tree{Files: make([]firstfiles.TreeFile, len(l.Files)), LeftOut: l.LeftOut}
	for i := range l.Files {
		f := &l.Files[i]
		t.Files[i] = firstfiles.TreeFile{Path: f.Path, Exec: f.Exec, Content: f.Content}
		if isPointer(f.Content) {
			t.Pointers++
		}
	}
	return t
}

// A pointer of Git LFS is a small file that begins so.
const (
	pointerBegins = "version https://git-lfs.github.com/spec/v1\n"
	maxPointer    = 1024
)

func isPointer(content *io.SectionReader) bool {
	if content.Size() < int64(len(pointerBegins)) || content.Size() >= maxPointer {
		return false
	}
	head := make([]byte, len(pointerBegins))
	_, err := content.ReadAt(head, 0)
	return err == nil && string(head) == pointerBegins
}
