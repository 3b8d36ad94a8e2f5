package tools_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

const png = "\x89PNG\r\n\x1a\n"

func image(kind, data string) messages.Block {
	return messages.Block{Image: &messages.Image{MediaType: "image/" + kind, Data: []byte(data)}}
}

func left(why string) messages.Block {
	return messages.Block{Text: "(an image was left out: " + why + ")"}
}

func TestImagesInResults(t *testing.T) {
	large := image("png", png+strings.Repeat("x", 3<<20))
	for name, tc := range map[string]struct{ give, want []messages.Block }{
		"of every kind": {
			[]messages.Block{image("png", png), image("jpeg", "\xff\xd8\xff."), image("gif", "GIF89a."), image("webp", "RIFF1234WEBP")},
			[]messages.Block{image("png", png), image("jpeg", "\xff\xd8\xff."), image("gif", "GIF89a."), image("webp", "RIFF1234WEBP")},
		},
		"between texts":      {[]messages.Block{{Text: "a"}, image("gif", "GIF87a"), {Text: "b"}}, []messages.Block{{Text: "a"}, image("gif", "GIF87a"), {Text: "b"}}},
		"an address":         {[]messages.Block{{Image: &messages.Image{URL: "https://x"}}}, []messages.Block{left("only images with their bytes are shown, not addresses")}},
		"no image":           {[]messages.Block{image("png", "<svg>")}, []messages.Block{left("it is not PNG, JPEG, GIF or WebP")}},
		"nothing":            {[]messages.Block{image("png", "")}, []messages.Block{left("it is not PNG, JPEG, GIF or WebP")}},
		"said to be another": {[]messages.Block{image("gif", png)}, []messages.Block{left(`it is image/png and said to be "image/gif"`)}},
		"too many": {
			[]messages.Block{image("png", png), image("png", png), image("png", png), image("png", png), image("png", png)},
			[]messages.Block{image("png", png), image("png", png), image("png", png), image("png", png), left("a result has at most 4")},
		},
		"too large together": {[]messages.Block{large, large}, []messages.Block{large, left("the images of a result have at most 4194304 bytes together")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSet(t, withEffect(messages.EffectRead, func(context.Context, tools.Call) (tools.Result, error) {
				return tools.Result{Content: tc.give}, nil
			}))
			got, err := s.Call(t.Context(), "t", tools.Call{})
			if err != nil {
				t.Fatal(err)
			}
			same := cmp.Comparer(func(a, b []byte) bool { return bytes.Equal(a, b) })
			if !cmp.Equal(tc.want, got.Content, same) {
				t.Errorf("%d blocks: %.300v", len(got.Content), got.Content)
			}
		})
	}
}
