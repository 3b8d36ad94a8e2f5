package pack

import (
	"maps"
	"slices"
)

// IDs are those of all objects.
func (o *Objects) IDs() []ID { return slices.Collect(maps.Keys(o.known)) }
