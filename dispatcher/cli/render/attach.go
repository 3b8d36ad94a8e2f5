package render

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/messages"
)

// AttachHelp describes a flag whose values Attach reads.
const AttachHelp = "a file that the task is about: an image, a PDF or text; may be repeated"

// Attach returns the input of a task: a text, and the files that go with it. What a file is, its bytes say: PNG, JPEG, GIF and
// WebP become images, PDF files, and UTF-8 a text below the file's name. Any other file is a *UsageError.
func Attach(cmd *cobra.Command, text string, files []string) (messages.Input, error) {
	in := messages.TextInput(text)
	for _, name := range files {
		data, err := ReadFile(cmd, name, messages.MaxInput)
		if err != nil {
			return nil, err
		}
		base := filepath.Base(name)
		switch kind := messages.ImageType(data); {
		case kind != "":
			in = append(in, messages.Block{Image: &messages.Image{MediaType: kind, Data: data}})
		case strings.HasPrefix(string(data), "%PDF-"):
			in = append(in, messages.Block{File: &messages.File{Name: base, MediaType: messages.TypePDF, Data: data}})
		case utf8.Valid(data):
			in = append(in, messages.Block{Text: fmt.Sprintf("\n\n%s:\n%s", Visible(base), data)})
		default:
			return nil, Usagef("%s is neither an image (PNG, JPEG, GIF, WebP) nor a PDF nor text in UTF-8", name)
		}
	}
	return in, nil
}
