package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

var _ runlog.Workspaces = (*Store)(nil)

func namedPrefix(tenant string) string { return "files." + tenant + ".named." }

func checkNamed(tenant, name string) error {
	return errors.Join(strict.CheckToken("tenant", tenant), strict.CheckToken("workspace", name))
}

// Workspace implements runlog.Workspaces.
func (st *Store) Workspace(ctx context.Context, tenant, name string) (w messages.Workspace, revision uint64, err error) {
	if err := checkNamed(tenant, name); err != nil {
		return w, 0, err
	}
	return st.named(ctx, namedPrefix(tenant)+name)
}

// named reads a head.
func (st *Store) named(ctx context.Context, subject string) (w messages.Workspace, revision uint64, err error) {
	m, ok, err := st.stream().Get(ctx, bus.Lookup{Last: subject})
	if err != nil || !ok {
		return w, 0, err
	}
	if err := strict.Decode(m.Data, &w); err != nil {
		return messages.Workspace{}, 0, fmt.Errorf("it is unreadable: %w", err)
	}
	return w, m.Seq, nil
}

// PutWorkspace implements runlog.Workspaces. A run must refer to the manifest, or have referred to it until now.
func (st *Store) PutWorkspace(ctx context.Context, tenant, name string, revision uint64, w messages.Workspace) error {
	if err := checkNamed(tenant, name); err != nil {
		return err
	}
	if w.Manifest != "" && !manifest.ValidHash(w.Manifest) {
		return fmt.Errorf("%q is no hash", strict.Clip(w.Manifest, 80))
	}
	body, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("encode workspace: %w", err)
	}
	m := &nats.Msg{Subject: namedPrefix(tenant) + name, Header: nats.Header{}, Data: body}
	bus.Expect(m, revision)
	_, err = st.bus.Store(ctx, m)
	if bus.Refused(err, bus.CodeWrongLast) {
		return runlog.ErrConflict // or stored, and the answer was lost: the next attempt sees it
	}
	return err
}

// Named yields the names of the workspaces of a tenant, those without files too. A replica may answer, some milliseconds late.
func (st *Store) Named(ctx context.Context, tenant string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := strict.CheckToken("tenant", tenant); err != nil {
			yield("", err)
			return
		}
		for subject, err := range st.stream().Subjects(ctx, namedPrefix(tenant)+"*") {
			if err != nil {
				err = fmt.Errorf("list workspaces: %w", err)
			}
			if !yield(strings.TrimPrefix(subject, namedPrefix(tenant)), err) {
				return
			}
		}
	}
}
