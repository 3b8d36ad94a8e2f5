package messages

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// Duration is a time.Duration that is written as text such as "90s" or "1h30m".
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads the text.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var s string
	if err := strict.Decode(data, &s); err != nil {
		return errors.New(`must be a text such as "90s" or "1h30m"`)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return errors.New(`must be a duration such as "90s" or "1h30m"`)
	}
	*d = Duration(v)
	return nil
}
