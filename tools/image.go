package tools

import (
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Limits of the images in one result.
const (
	maxImages     = 4
	maxImageBytes = 4 << 20 // together; what a provider takes in one request is about as much
)

// imageRoom is what the images of a result have used up.
type imageRoom struct{ count, bytes int }

// take keeps an image that a provider will understand. Of another the model is told why it is missing.
func (r *imageRoom) take(i *messages.Image) messages.Block {
	switch {
	case i.URL != "":
		return noImage("only images with their bytes are shown, not addresses")
	case messages.ImageType(i.Data) == "":
		return noImage("it is not PNG, JPEG, GIF or WebP")
	case i.MediaType != messages.ImageType(i.Data):
		return noImage(fmt.Sprintf("it is %s and said to be %q", messages.ImageType(i.Data), strict.Clip(i.MediaType, maxShown)))
	case r.count == maxImages:
		return noImage(fmt.Sprintf("a result has at most %d", maxImages))
	case r.bytes+len(i.Data) > maxImageBytes:
		return noImage(fmt.Sprintf("the images of a result have at most %d bytes together", maxImageBytes))
	}
	r.count++
	r.bytes += len(i.Data)
	return messages.Block{Image: &messages.Image{MediaType: i.MediaType, Data: i.Data}}
}

func noImage(why string) messages.Block {
	return messages.Block{Text: "(an image was left out: " + why + ")"}
}
