package bus_test

import (
	"errors"
	"testing"

	"github.com/longshore-run/longshore/messages"
)

func TestQuotas(t *testing.T) {
	b, _ := openNew(t)
	ctx := t.Context()
	ann := messages.QuotaRef{Kind: messages.QuotaTenant, Name: "ann"}
	q, revision, err := b.Quota(ctx, ann)
	if err != nil || revision != 0 || q != (messages.Quota{}) {
		t.Fatalf("got %+v, %d, %v before anybody said anything", q, revision, err)
	}
	want := messages.Quota{Weight: 3, MaxQueued: 10}
	if _, err := b.PutQuota(ctx, ann, want, "root", nil); err != nil {
		t.Fatal(err)
	}
	q, revision, err = b.Quota(ctx, ann)
	if err != nil || revision == 0 || q != want {
		t.Fatalf("got %+v, %d, %v", q, revision, err)
	}
	stale := revision + 1
	if _, err := b.PutQuota(ctx, ann, messages.Quota{}, "root", &stale); !errors.Is(err, messages.ErrRevision) {
		t.Errorf("got %v for a change of what has changed", err)
	}
	var field *messages.FieldError
	if _, err := b.PutQuota(ctx, ann, messages.Quota{Weight: -1}, "root", nil); !errors.As(err, &field) {
		t.Errorf("got %v for a weight of -1", err)
	}
	if _, _, err := b.Quota(ctx, messages.QuotaRef{Kind: "tenant", Name: "*"}); !errors.As(err, &field) {
		t.Errorf("got %v for a name with a star", err)
	}
	if all, err := b.Quotas(ctx); err != nil || len(all) != 1 || all[ann] != want {
		t.Errorf("got %v, %v", all, err)
	}
	if err := b.DeleteQuota(ctx, ann, "root", nil); err != nil {
		t.Fatal(err)
	}
	if all, err := b.Quotas(ctx); err != nil || len(all) != 0 {
		t.Errorf("got %v, %v after it was deleted", all, err)
	}
}
