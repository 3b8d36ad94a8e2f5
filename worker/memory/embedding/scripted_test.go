package embedding_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/worker/memory/embedding"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

func TestScripted(t *testing.T) {
	s := embedding.NewScripted("the vessel", "the price", "the engine")
	texts := []string{
		"The vessel left the port.", "A ship departed from the harbour.", "Invoices are settled within thirty days.",
		"", "\xff\x00", strings.Repeat("w", 1<<20), "the engines were repaired", "the engine was repairred",
	}
	got, err := s.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	again, err := embedding.NewScripted("the vessel", "the price", "the engine").Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if !slices.Equal(got[i], again[i]) || len(got[i]) != s.Dimensions() {
			t.Errorf("%d: not the same vector again", i)
		}
		if c := longterm.Cosine(got[i], got[i]); c < 0.999 {
			t.Errorf("%d: has no direction", i)
		}
	}
	if same, other := longterm.Cosine(got[0], got[1]), longterm.Cosine(got[0], got[2]); same < 0.2 || same < other+0.2 {
		t.Errorf("what means the same: %v, and another thing: %v", same, other)
	}
	if slip := longterm.Cosine(got[6], got[7]); slip < 0.3 {
		t.Errorf("a slip of the pen: %v", slip)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Embed(ctx, texts); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// The same text has the same vector to the last bit, however long it is.
func TestScriptedIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	s := embedding.NewScripted("a cat", "a dog and a cat", "berth crane ship")
	for i := range 100 {
		var text strings.Builder
		for j := range 60 {
			fmt.Fprintf(&text, "word%dx%d crane%d ", i*j, j*7, j)
		}
		texts := slices.Repeat([]string{text.String()}, 20)
		vectors, err := s.Embed(t.Context(), texts)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vectors[1:] {
			if !slices.Equal(v, vectors[0]) {
				t.Fatalf("text %d has two vectors", i)
			}
		}
	}
}
