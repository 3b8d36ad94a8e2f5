package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	api "github.com/sashabaranov/go-openai"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// filePart is a file in a message. The library's parts know none.
// https://platform.openai.com/docs/api-reference/chat/create, "file content part".
type filePart struct {
	Type string `json:"type"`
	File struct {
		Name string `json:"filename"`
		Data string `json:"file_data"` // a data URL
	} `json:"file"`
}

// attach puts the files of a user's message, if it has any, into the content of the message at a place. Parts are those of its
// images and texts; nil: it has no images.
func (p *Provider) attach(e *edit, at int, m *messages.Message, parts []api.ChatMessagePart) error {
	var content []any
	for i := range m.Content {
		f := m.Content[i].File
		if f == nil {
			continue
		}
		if !p.config.Capabilities.Files {
			return &model.Error{
				Class: model.InvalidRequest, Detail: "this model takes no files",
				Hint: "choose a model that reads PDF, and say in its provider's capabilities that it does",
			}
		}
		part := filePart{Type: "file"}
		part.File.Name, part.File.Data = f.Title(), "data:"+f.MediaType+";base64,"+base64.StdEncoding.EncodeToString(f.Data)
		content = append(content, part)
	}
	if content == nil {
		return nil
	}
	if parts == nil {
		parts, _, _ = p.parts(m.Content) // texts alone: nothing can be wrong with them
	}
	for _, part := range parts {
		content = append(content, part)
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("write files: %w", err)
	}
	e.messages[at] = echoed{fields: map[string]json.RawMessage{"content": raw}}
	return nil
}
