package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages/strict"
)

// ErrObject means that an object of a store is no segment as an auditor has put it there.
var ErrObject = errors.New("it is not what an auditor has stored")

// Fetched is what Fetch has got.
type Fetched struct {
	Segments int   `json:"segments"`
	Bytes    int64 `json:"bytes"`
}

// fetchTries is how often an object is asked for: an auditor may replace one while it is read.
const fetchTries = 3

// Fetch gets the copies of an audit into a folder, which must be empty or not be there, for Verify. It continues after
// an object that is not what its digest says, keeps what it got of that, and ends with an ErrObject.
//
// It may run while the auditor does: heads are got first, so that all they cover is there.
func Fetch(ctx context.Context, store jetstream.ObjectStore, dir string) (Fetched, error) {
	var got Fetched
	if err := os.MkdirAll(dir, privateDir); err != nil {
		return got, fmt.Errorf("make folder: %w", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		return got, errors.Join(err, fmt.Errorf("%s is not empty", dir))
	}
	var wrong []error
	for _, heads := range []bool{true, false} {
		list, err := objects(ctx, store)
		if err != nil {
			return got, err
		}
		for _, name := range slices.Sorted(maps.Keys(list)) {
			chain, _, ok := parseName(name)
			if (chain == headsChain) != heads {
				continue
			}
			if o := list[name]; !ok || o.Opts != nil && o.Opts.Link != nil {
				wrong = append(wrong, fmt.Errorf("object %.200q: %w", name, ErrObject))
				continue
			}
			n, err := fetch(ctx, store, dir, name)
			switch {
			case errors.Is(err, jetstream.ErrObjectNotFound): // removed for its age meanwhile
				continue
			case errors.Is(err, ErrObject):
				wrong = append(wrong, err)
			case err != nil:
				return got, err
			}
			got.Segments++
			got.Bytes += n
		}
	}
	return got, errors.Join(wrong...)
}

// fetch gets one object.
func fetch(ctx context.Context, store jetstream.ObjectStore, dir, name string) (n int64, err error) {
	full := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), privateDir); err != nil {
		return 0, fmt.Errorf("make folder: %w", err)
	}
	for range fetchTries {
		if n, err = fetchOnce(ctx, store, full, name); err == nil || ctx.Err() != nil || errors.Is(err, jetstream.ErrObjectNotFound) {
			return n, err
		}
	}
	return n, err
}

func fetchOnce(ctx context.Context, store jetstream.ObjectStore, full, name string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	object, err := store.Get(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("get %s: %w", name, err)
	}
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, privateFile)
	if err != nil {
		return 0, errors.Join(fmt.Errorf("write segment: %w", err), object.Close())
	}
	n, err := io.Copy(f, object)
	if err == nil {
		err = object.Error()
	}
	if err := errors.Join(err, f.Close(), object.Close()); err != nil {
		if errors.Is(err, jetstream.ErrDigestMismatch) {
			return n, fmt.Errorf("object %s: %w: its digest is of other bytes", name, ErrObject)
		}
		return n, fmt.Errorf("get %s: %w", name, err)
	}
	return n, nil
}

// parseName reads the path of a segment: nothing that leads out of a folder is one.
func parseName(name string) (chain string, segment uint64, ok bool) {
	chain, file := path.Split(name)
	chain = strings.TrimSuffix(chain, "/")
	if tenant := tenantOf(chain); chain != headsChain && (!strict.ValidToken(tenant) || chainOf(tenant) != chain) {
		return "", 0, false
	}
	segment, err := strconv.ParseUint(strings.TrimSuffix(file, extension), 10, 64)
	return chain, segment, err == nil && segment > 0 && file == segmentName(segment)
}
