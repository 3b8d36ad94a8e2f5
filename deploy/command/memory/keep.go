package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/deploy/command/memory/parts"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/memory"
)

// Fields of the parts of a document. They stay readable where texts are encrypted, so that titles and headings are in the texts.
const (
	fieldHash  = "hash"  // of the first part: what the document was made of, empty while not all of its parts are stored
	fieldParts = "parts" // of the document
	fieldPage  = "page"  // of a PDF file
)

// Bounds of a request: one is embedded at once, and fits a message.
const (
	putItems   = 64
	putBytes   = 512 << 10
	putTimeout = time.Minute // has room for the vectors
)

// madeBy changes when the same bytes become other parts, so that documents are imported again.
const madeBy = "1"

// keeper imports documents.
type keeper struct {
	*importing

	reader   *parts.Reader
	client   *dispatcher.Client // nil: nothing is stored
	progress func(parts int)
}

// keep imports a document. An error is about all of them: what is wrong with this one is in the outcome.
func (k *keeper) keep(ctx context.Context, from *source) (outcome, error) {
	out := outcome{Document: from.name}
	data, err := from.read(ctx)
	if err != nil {
		return out.failed(ctx, err)
	}
	hash := k.hash(data)
	was := before{}
	if k.client != nil {
		if was, err = k.before(ctx, from.name); err != nil {
			return out, err
		}
		if was.hash == hash && !k.force {
			out.Status, out.Parts = statusUnchanged, was.parts
			return out, nil
		}
	}
	d, err := k.reader.Read(ctx, from.name, data, k.cut)
	switch {
	case errors.Is(err, parts.ErrNoText) && from.within:
		out.Status, out.Error = statusLeftOut, err.Error()
		return out, nil
	case err != nil:
		return out.failed(ctx, err)
	}
	out.Title, out.Pages, out.Parts = d.Title, d.Pages, len(d.Parts)
	if k.client == nil {
		out.Status = statusRead
		return out, nil
	}
	err = k.replace(ctx, from.name, k.items(from.name, &d), was, hash)
	if _, wrong := errors.AsType[*messages.FieldError](err); wrong {
		return out.failed(ctx, err)
	}
	out.Status, out.Removed = statusImported, max(0, was.parts-len(d.Parts))
	return out, err
}

// failed is the outcome of a document that cannot be imported.
func (o outcome) failed(ctx context.Context, err error) (outcome, error) {
	if ctx.Err() != nil {
		return o, context.Cause(ctx)
	}
	o.Status, o.Parts, o.Error = statusFailed, 0, err.Error()
	return o, nil
}

// hash reports whether a document would become the same parts as before.
func (k *keeper) hash(data []byte) string {
	sum := sha256.New()
	head, _ := json.Marshal([]any{madeBy, k.cut.Size.String(), k.cut.Overlap.String(), k.tags}) // strings alone
	sum.Write(head)
	sum.Write(data)
	// Letters alone: rules that look for the numbers of cards would find some among digits.
	var letters []byte
	for _, b := range sum.Sum(nil)[:16] {
		letters = append(letters, 'a'+b>>4, 'a'+b&0xf)
	}
	return string(letters)
}

// before is what the collection has of a document.
type before struct {
	hash  string
	parts int // that it may have
}

func (k *keeper) before(ctx context.Context, name string) (before, error) {
	it, err := k.client.Memory().Get(ctx, k.Tenant, k.collection, partID(name, 0))
	switch {
	case errors.Is(err, dispatcher.ErrNoItem):
		return before{}, nil
	case err != nil:
		return before{}, err
	}
	hash, _ := it.Fields[fieldHash].(string)
	n, _ := it.Fields[fieldParts].(float64)
	return before{hash, int(min(max(n, 0), parts.MaxParts))}, nil
}

// partID is the id of a part of a document: the same in each import.
func partID(name string, n int) string {
	sum := sha256.Sum256([]byte(name))
	return "doc-" + hex.EncodeToString(sum[:12]) + "-" + strconv.Itoa(n)
}

func (k *keeper) items(name string, d *parts.Document) []memory.Item {
	items := make([]memory.Item, len(d.Parts))
	for n, p := range d.Parts {
		items[n] = memory.Item{
			ID: partID(name, n), Text: p.Text, Tags: k.tags, Source: memory.Source{Document: name, Part: n}, Fields: map[string]any{fieldParts: float64(len(d.Parts))},
		}
		if p.Page > 0 {
			items[n].Fields[fieldPage] = float64(p.Page)
		}
	}
	return items
}

// replace stores the parts of a document in place of those before. When it is interrupted, the first part says that the document is not complete,
// and how many parts there may be.
func (k *keeper) replace(ctx context.Context, name string, items []memory.Item, was before, hash string) error {
	requests := requestsOf(items)
	first := &items[0]
	if len(requests) > 1 || was.parts > len(items) {
		first.Fields[fieldHash], first.Fields[fieldParts] = "", float64(max(was.parts, len(items)))
		if err := k.put(ctx, items[:1]); err != nil {
			return err
		}
		if err := k.remove(ctx, name, len(items), was.parts); err != nil {
			return err
		}
		for _, r := range requests[1:] {
			if err := k.put(ctx, r); err != nil {
				return err
			}
			k.progress(len(r))
		}
	}
	first.Fields[fieldHash], first.Fields[fieldParts] = hash, float64(len(items))
	if err := k.put(ctx, requests[0]); err != nil {
		return err
	}
	k.progress(len(requests[0]))
	return nil
}

// requestsOf are the items of each request.
func requestsOf(items []memory.Item) (out [][]memory.Item) {
	begin, size := 0, 0
	for i := range items {
		n := sizeOf(&items[i])
		if i > begin && (i-begin == putItems || size+n > putBytes) {
			out, begin, size = append(out, items[begin:i]), i, 0
		}
		size += n
	}
	return append(out, items[begin:])
}

// sizeOf is how many bytes an item has in a request.
func sizeOf(it *memory.Item) int {
	data, err := json.Marshal(it)
	if err != nil {
		return putBytes
	}
	return len(data) + 1
}

func (k *keeper) put(ctx context.Context, items []memory.Item) error {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	_, err := k.client.Memory().Put(ctx, memory.PutRequest{Tenant: k.Tenant, Name: k.collection, Items: items, By: k.by})
	return err
}

// remove removes the parts of a document from one up to another.
func (k *keeper) remove(ctx context.Context, name string, from, to int) error {
	for from < to {
		var ids []string
		for ; from < to && len(ids) < memory.MaxDelete; from++ {
			ids = append(ids, partID(name, from))
		}
		if _, err := k.client.Memory().Delete(ctx, memory.DeleteRequest{Tenant: k.Tenant, Name: k.collection, IDs: ids, By: k.by}); err != nil {
			return fmt.Errorf("remove parts that %s no longer has: %w", name, err)
		}
	}
	return nil
}
