package policy

import (
	"slices"

	"github.com/longshore-run/longshore/messages"
)

// Blocks is Text for the texts of blocks: each of them, and all together, because they are read as one. Blocks that hold a match only
// together become one. The finding that blocks them is the last.
func (r *Rules) Blocks(at messages.PolicyPoint, tool string, in []messages.Block) (out []messages.Block, found []Finding, blocked bool) {
	if r == nil {
		return in, nil, false
	}
	out = Joined(in, func(text string) string {
		text, fs, stop := r.Text(at, tool, text)
		found, blocked = append(found, fs...), blocked || stop
		return text
	})
	if blocked {
		i := slices.IndexFunc(found, func(f Finding) bool { return f.Action == messages.PolicyBlock })
		by := found[i]
		return nil, append(slices.Delete(found, i, i+1), by), true
	}
	return out, found, false
}

// Joined replaces the texts of blocks by what clean makes of them, and then of all together. Where that changes them once more, the
// first block has all the text, and others without anything else are left out.
func Joined(in []messages.Block, clean func(string) string) []messages.Block {
	out := slices.Clone(in)
	texts := 0
	for i := range out {
		if out[i].Text == "" {
			continue
		}
		out[i].Text = clean(out[i].Text)
		texts++
	}
	if texts < 2 {
		return out
	}
	said := messages.Message{Content: out}
	all := said.Text()
	whole := clean(all)
	if whole == all {
		return out
	}
	joined := out[:0]
	for _, b := range out {
		alone := b == messages.Block{Text: b.Text} && b.Text != ""
		if b.Text != "" {
			b.Text, whole = whole, ""
		}
		if b.Text != "" || !alone {
			joined = append(joined, b)
		}
	}
	return joined
}
