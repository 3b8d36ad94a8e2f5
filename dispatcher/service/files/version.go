package files

import (
	"context"
	"slices"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// version is the files of a run at a time.
type version struct {
	*manifest.Manifest

	hash string // empty: none were saved
	step int
}

// version finds the files that a request means: those of a manifest that the run refers to, those after a step, or the last.
func (fs *Files) version(ctx context.Context, ref messages.Ref, step *int, hash string) (version, error) {
	v := version{Manifest: &manifest.Manifest{}, hash: hash}
	if err := fs.cfg.Runs.HasLog(ctx, ref); err != nil {
		return v, err
	}
	if hash == "" {
		saved, err := fs.saved(ctx, ref, step)
		if err != nil || saved == nil || saved.Manifest == "" {
			return v, err
		}
		v.hash, v.step = saved.Manifest, saved.Step
	}
	switch has, err := fs.cfg.Store.Refers(ctx, ref, v.hash); {
	case err != nil:
		return v, err
	case !has:
		return v, noFile("the run has no such list of files")
	}
	var err error
	v.Manifest, err = fs.read(ctx, ref.Tenant, v.hash)
	return v, err
}

// read is a manifest that the caller may see.
func (fs *Files) read(ctx context.Context, tenant, hash string) (*manifest.Manifest, error) {
	if m := fs.kept.find(tenant, hash); m != nil {
		return m, nil
	}
	m, err := fs.cfg.Store.Manifest(ctx, tenant, hash)
	if err != nil {
		return nil, err
	}
	fs.kept.keep(tenant, hash, m)
	return m, nil
}

// saved is what the log says of the files after a step, or last of all; nil: none were saved by then. It reads heads, and the
// entries that it needs.
func (fs *Files) saved(ctx context.Context, ref messages.Ref, step *int) (*record.FilesSaved, error) {
	at := []uint64{}
	for e, err := range fs.cfg.Log.Heads(ctx, ref, 0, runlog.Tail) {
		if err != nil {
			return nil, err
		}
		if len(at) == 0 || e.Head.Has(record.KindFilesSaved) { // the first one may have those of the run that it was forked from
			at = append(at, e.Seq)
		}
	}
	for _, seq := range slices.Backward(at) {
		for e, err := range fs.cfg.Log.Read(ctx, ref, seq-1, seq) {
			if err != nil {
				return nil, err
			}
			if e.Seq != seq {
				break
			}
			if f := lastSaved(e.Records, step); f != nil {
				return f, nil
			}
		}
	}
	return nil, nil
}

// lastSaved is the last record of saved files that counts after a step.
func lastSaved(records []record.Record, step *int) *record.FilesSaved {
	for _, r := range slices.Backward(records) {
		switch r := r.(type) {
		case *record.FilesSaved:
			if step == nil || r.Step <= *step {
				return r
			}
		case *record.Started:
			if f := lastSaved(r.Prefix, step); f != nil {
				return f
			}
		}
	}
	return nil
}

// Bounds of what is kept between two requests.
const (
	maxKept      = 8
	maxKeptFiles = 20_000 // of one manifest
)

// manifests keeps those that were read last: a file is read in many requests.
type manifests struct {
	mu   sync.Mutex
	last []keptManifest // the newest first
}

type keptManifest struct {
	tenant, hash string
	manifest     *manifest.Manifest // not to be changed
}

func (k *manifests) find(tenant, hash string) *manifest.Manifest {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.last, func(m keptManifest) bool { return m.tenant == tenant && m.hash == hash })
	if i < 0 {
		return nil
	}
	found := k.last[i]
	k.last = slices.Insert(slices.Delete(k.last, i, i+1), 0, found)
	return found.manifest
}

func (k *manifests) keep(tenant, hash string, m *manifest.Manifest) {
	if len(m.Files)+len(m.Folders) > maxKeptFiles {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = slices.Insert(k.last, 0, keptManifest{tenant, hash, m})
	k.last = k.last[:min(len(k.last), maxKept)]
}
