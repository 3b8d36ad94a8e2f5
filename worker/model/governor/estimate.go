package governor

import (
	"errors"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

const (
	bytesPerToken = 4
	imageTokens   = 1000 // of one picture, whatever its size
	replyTokens   = 1024 // of a reply without a limit
	maxEstimate   = 1 << 24
)

// estimate is how many tokens a call may take: a token for four bytes of the request, and the longest reply.
func estimate(r *model.Request) int64 {
	size, images := 0, 0
	var count func([]messages.Block)
	count = func(blocks []messages.Block) {
		for _, b := range blocks {
			size += len(b.Text)
			if b.Image != nil {
				images++
			}
			if b.File != nil {
				size += bytesPerToken * b.File.Tokens()
			}
			if b.Reasoning != nil && r.Echo {
				size += len(b.Reasoning.Text) + len(b.Reasoning.Opaque)
			}
			if b.ToolCall != nil {
				size += len(b.ToolCall.Name) + len(b.ToolCall.Arguments)
			}
			if b.ToolResult != nil {
				count(b.ToolResult.Content)
			}
		}
	}
	for _, m := range r.Messages {
		count(m.Content)
	}
	for _, t := range r.Tools {
		size += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	if r.Format != nil {
		size += len(r.Format.Schema)
	}
	reply := r.MaxTokens
	if reply <= 0 {
		reply = replyTokens
	}
	total := int64(size)/bytesPerToken + imageTokens*int64(images) + min(int64(reply), maxEstimate)
	return min(max(total, 1), maxEstimate)
}

// used is how many tokens a call took, as far as that is known: what the provider counted, nothing for a call that it
// did not begin to work on, and else the estimate.
func used(tokens int64, reply *model.Reply, err error) int64 {
	if reply != nil {
		u := reply.Usage
		total := u.Total
		if total <= 0 {
			total = max(u.Input, 0) + max(u.Output, 0)
		}
		if total <= 0 {
			return tokens
		}
		return min(total, maxEstimate)
	}
	var failed *model.Error
	if errors.As(err, &failed) && isUnpaid(failed.Class) {
		return 0
	}
	return tokens
}

// isUnpaid reports whether a provider answers so before it works. A network that failed, a timeout, a cut stream and a
// bad reply leave open what was counted.
func isUnpaid(c model.Class) bool {
	switch c {
	case model.RateLimited, model.Overloaded, model.Auth, model.Quota, model.InvalidRequest, model.ContextLength, model.NoProvider:
		return true
	case model.Timeout, model.Network, model.Truncated, model.ContentFilter, model.ModelOutput, model.ReplyTooLarge, model.Unknown:
		return false
	default:
		return false
	}
}
