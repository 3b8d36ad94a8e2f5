package dispatcher

import (
	"context"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// Put stores a new version of a prompt once it was found right, and returns it as it is kept. The same
// prompt once more makes no new version. With ifVersion it is done only if this is the newest, 0 for none; else the error is
// ErrRevision.
func (of Prompts) Put(ctx context.Context, p messages.Prompt, ifVersion *uint64) (messages.Prompt, error) {
	var out messages.Prompt
	err := of.client.request(ctx, control.SubjectPromptPut, control.PromptPut{Prompt: p, IfVersion: ifVersion}, &out)
	return out, err
}

// Get returns a version of a prompt, or the newest for 0; ErrUnknownPrompt if there is none.
func (of Prompts) Get(ctx context.Context, id string, version uint64) (messages.Prompt, error) {
	var out messages.Prompt
	err := of.client.request(ctx, control.SubjectPromptGet, control.CatalogRequest{Name: id, Revision: version}, &out)
	return out, err
}

// List returns the prompts that fit a filter, by id, without their texts; 1000 at most.
func (of Prompts) List(ctx context.Context, f control.PromptFilter) ([]messages.Prompt, error) {
	var out control.PromptList
	err := of.client.request(ctx, control.SubjectPromptList, f, &out)
	return out.Prompts, err
}

// Render fills a stored prompt in. A variable that is missing is a *messages.FieldError of "vars".
func (of Prompts) Render(ctx context.Context, r control.PromptRender) (control.PromptRendered, error) {
	var out control.PromptRendered
	err := of.client.request(ctx, control.SubjectPromptRender, r, &out)
	return out, err
}

// Validate tells what is wrong with a prompt, and stores nothing.
func (of Prompts) Validate(ctx context.Context, p messages.Prompt) (control.PromptVerdict, error) {
	var out control.PromptVerdict
	err := of.client.request(ctx, control.SubjectPromptValidate, p, &out)
	return out, err
}

// History returns what is kept of the versions of a prompt, newest first, 64 at most.
func (of Prompts) History(ctx context.Context, id string) ([]control.Change, error) {
	var out control.History
	err := of.client.request(ctx, control.SubjectPromptHistory, control.CatalogRequest{Name: id}, &out)
	return out.Changes, err
}

// Delete removes a prompt. Its history stays, and so does what runs have taken of it.
func (of Prompts) Delete(ctx context.Context, r control.CatalogDelete) (control.Change, error) {
	var out control.Change
	err := of.client.request(ctx, control.SubjectPromptDelete, r, &out)
	return out, err
}
