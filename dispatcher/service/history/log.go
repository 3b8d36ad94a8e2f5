package history

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

// maxPageEntries bounds a page of a log. To read so many, and the next one, which says that there are more, the dispatcher asks twice.
const maxPageEntries = bus.FirstPage + bus.NextPages - 1

// log answers with a page of a run's log. Clients may not read the stream; this is how they see it.
func (h *History) log(ctx context.Context, req control.LogRequest) (any, error) {
	ref, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err != nil {
		return nil, err
	}
	if err := req.Check(); err != nil {
		return nil, err
	}
	if err := h.cfg.Runs.HasLog(ctx, ref); err != nil {
		return nil, err
	}
	return h.page(ctx, ref, req)
}

func (h *History) page(ctx context.Context, ref messages.Ref, req control.LogRequest) (*control.LogPage, error) {
	room := h.cfg.Room.Page()
	if req.Offset > 0 {
		if e, ok := h.parts.find(ref, req.After); ok {
			return h.partOf(req.Offset, e, room)
		}
	}
	page := &control.LogPage{Entries: []control.EntryCopy{}}
	most, size := maxPageEntries, 0
	if req.Limit > 0 {
		most = min(most, req.Limit)
	}
	for e, err := range h.cfg.Log.Read(ctx, ref, req.After, runlog.Tail) {
		if err != nil {
			return nil, err
		}
		l, err := control.NewEntryCopy(e)
		if err != nil {
			return nil, fmt.Errorf("encode entry %d of %s: %w", e.Seq, ref, err)
		}
		size += sizeOf(&l)
		switch {
		case len(page.Entries) == 0 && size > room:
			data, err := json.Marshal(l)
			if err != nil {
				return nil, fmt.Errorf("encode entry %d of %s: %w", e.Seq, ref, err)
			}
			return h.partOf(req.Offset, &keptEntry{run: ref, after: req.After, seq: e.Seq, data: data}, room)
		case len(page.Entries) == most, size > room:
			page.More = true
			return page, nil
		}
		page.Entries = append(page.Entries, l)
	}
	return page, nil
}

// sizeOf is how many bytes an entry has in a page, at most.
func sizeOf(l *control.EntryCopy) int {
	return len(`{"seq":18446744073709551615,"head":,"records":},`) + len(l.Head) + len(l.Records)
}

// partOf is the part of an entry from an offset that fits a message, where it is in base64. The entry is kept until its last
// part was asked for.
func (h *History) partOf(offset int, e *keptEntry, room int) (*control.LogPage, error) {
	if offset >= len(e.data) {
		return nil, &messages.FieldError{Field: "offset", Reason: fmt.Sprintf("entry %d has %d bytes", e.seq, len(e.data))}
	}
	end := min(len(e.data), offset+room/4*3)
	if end < len(e.data) {
		h.parts.keep(e)
	} else {
		h.parts.drop(e)
	}
	return &control.LogPage{
		Entries: []control.EntryCopy{}, More: true,
		Part: &control.LogPart{Seq: e.seq, Offset: offset, Size: len(e.data), Data: e.data[offset:end]},
	}, nil
}
