package bus

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// HeaderIncrement says what a message adds to the counter of its subject.
const HeaderIncrement = "Nats-Incr"

// Counted reads the value of a counter.
func Counted(data []byte) (int64, error) {
	var c struct {
		Value string `json:"val"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return 0, fmt.Errorf("read counter: %w", err)
	}
	n, err := strconv.ParseInt(c.Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read counter: %w", err)
	}
	return n, nil
}
