package memory

import (
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Requests about long-term memory, of the dispatcher's micro service.
const (
	SubjectCollections = "longshore.memory.collections" // CollectionsRequest -> Collections
	SubjectList        = "longshore.memory.list"        // ListRequest -> Page
	SubjectGet         = "longshore.memory.get"         // ItemRequest -> Item
	SubjectSearch      = "longshore.memory.search"      // SearchRequest -> Found
	SubjectPut         = "longshore.memory.put"         // PutRequest -> PutReply
	SubjectDelete      = "longshore.memory.delete"      // DeleteRequest -> DeleteReply
)

// Bounds of requests.
const (
	MaxList     = 1000 // items of a page
	DefaultList = 100
	MaxTopK     = 100
	DefaultTopK = 10
	MaxPut      = 256 // items of a write
	MaxDelete   = 1000
	MaxQuestion = 8 << 10 // bytes of what is searched for
	maxCursor   = 256
)

// CollectionsRequest asks what a tenant has.
type CollectionsRequest struct {
	Tenant string `json:"tenant,omitempty"` // default "default"
}

// Check fills in the default and checks the name.
func (r *CollectionsRequest) Check() error { return checkTenant(&r.Tenant) }

func checkTenant(tenant *string) error {
	if *tenant == "" {
		*tenant = messages.DefaultTenant
	}
	return strict.CheckToken("tenant", *tenant)
}

func checkPlace(tenant *string, collection string) error {
	if err := checkTenant(tenant); err != nil {
		return err
	}
	return strict.CheckToken("name", collection)
}

// Collection is what a tenant has in one.
type Collection struct {
	Name  string `json:"name"`
	Items int64  `json:"items"`
	Bytes int64  `json:"bytes"`
}

// Collections is what a tenant has, by name. Those that are left out because the answer is full count in Items and Bytes.
type Collections struct {
	Collections []Collection `json:"collections"`
	Items       int64        `json:"items"`
	Bytes       int64        `json:"bytes"`
	More        bool         `json:"more,omitempty"` // there are others
}

// MaxCollections is how many collections a list has at most.
const MaxCollections = 1000

// ListRequest asks for the items of a collection, the newest first.
type ListRequest struct {
	Tenant string `json:"tenant,omitempty"`
	Name   string `json:"name"` // of the collection
	Filter

	Whole bool   `json:"whole,omitempty"` // texts as they are; else their first 200 bytes
	Limit int    `json:"limit,omitempty"`
	After string `json:"after,omitempty"` // Next of the page before
}

// Check fills in what was left out and checks the rest.
func (r *ListRequest) Check() error {
	if err := checkPlace(&r.Tenant, r.Name); err != nil {
		return err
	}
	if r.Limit == 0 {
		r.Limit = DefaultList
	}
	if r.Limit < 1 || r.Limit > MaxList {
		return &messages.FieldError{Field: "limit", Reason: fmt.Sprintf("must be 1 to %d", MaxList)}
	}
	if len(r.After) > maxCursor {
		return &messages.FieldError{Field: "after", Reason: "is not of a page of this list"}
	}
	return r.check()
}

// Page is a part of a list. It may have fewer items than were asked for.
type Page struct {
	Items []Item `json:"items"`
	Next  string `json:"next,omitempty"` // After of the next page; empty at the end
}

// ItemRequest names an item.
type ItemRequest struct {
	Tenant string `json:"tenant,omitempty"`
	Name   string `json:"name"` // of the collection
	ID     string `json:"id"`
}

// Check fills in the default and checks the names.
func (r *ItemRequest) Check() error {
	if err := checkPlace(&r.Tenant, r.Name); err != nil {
		return err
	}
	return strict.CheckToken("id", r.ID)
}

// SearchRequest asks for the items that fit best.
type SearchRequest struct {
	Tenant string `json:"tenant,omitempty"`
	Name   string `json:"name"` // of the collection
	Filter

	Text string `json:"text"`
	TopK int    `json:"topK,omitempty"`
}

// Check fills in what was left out and checks the rest.
func (r *SearchRequest) Check() error {
	if err := checkPlace(&r.Tenant, r.Name); err != nil {
		return err
	}
	if r.TopK == 0 {
		r.TopK = DefaultTopK
	}
	switch {
	case r.TopK < 1 || r.TopK > MaxTopK:
		return &messages.FieldError{Field: "topK", Reason: fmt.Sprintf("must be 1 to %d", MaxTopK)}
	case r.Text == "":
		return &messages.FieldError{Field: "text", Reason: "is missing: say what to search for"}
	}
	if err := strict.CheckText("text", r.Text, MaxQuestion); err != nil {
		return err
	}
	return r.check()
}

// Hit is an item that was found. Scores are comparable within one answer only.
type Hit struct {
	Item

	Score float64 `json:"score"`
}

// Found is the answer to a search, the best first.
type Found struct {
	Hits     []Hit  `json:"hits"`
	Degraded string `json:"degraded,omitempty"` // what the search had to leave out
	More     bool   `json:"more,omitempty"`     // the message had no room for all that was asked for
}

// PutRequest stores items: as a whole or not at all.
type PutRequest struct {
	Tenant string `json:"tenant,omitempty"`
	Name   string `json:"name"` // of the collection
	Items  []Item `json:"items"`
	By     string `json:"by,omitempty"`
}

// Check fills in the default and checks names and bounds; the store checks what items hold.
func (r *PutRequest) Check() error {
	if err := checkPlace(&r.Tenant, r.Name); err != nil {
		return err
	}
	if len(r.Items) == 0 || len(r.Items) > MaxPut {
		return &messages.FieldError{Field: "items", Reason: fmt.Sprintf("must be 1 to %d items", MaxPut)}
	}
	return nil
}

// PutReply says what became of the items of a write.
type PutReply struct {
	Written   int `json:"written"`
	Unchanged int `json:"unchanged"` // they were there as they are
}

// DeleteRequest removes items by their ids.
type DeleteRequest struct {
	Tenant string   `json:"tenant,omitempty"`
	Name   string   `json:"name"` // of the collection
	IDs    []string `json:"ids"`
	By     string   `json:"by,omitempty"`
}

// Check fills in the default and checks the names.
func (r *DeleteRequest) Check() error {
	if err := checkPlace(&r.Tenant, r.Name); err != nil {
		return err
	}
	if len(r.IDs) == 0 || len(r.IDs) > MaxDelete {
		return &messages.FieldError{Field: "ids", Reason: fmt.Sprintf("must be 1 to %d ids", MaxDelete)}
	}
	for i, id := range r.IDs {
		if err := strict.CheckToken(fmt.Sprintf("ids[%d]", i), id); err != nil {
			return err
		}
	}
	return nil
}

// DeleteReply says how many items were removed; the others were not there.
type DeleteReply struct {
	Deleted int `json:"deleted"`
}
