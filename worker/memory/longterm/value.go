package longterm

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"time"
)

// encode is a value of a field as text: equal values have equal texts, different ones different texts.
func encode(value any) string {
	switch v := plain(value).(type) {
	case string:
		return "s" + v
	case float64:
		text, _ := json.Marshal(v) // finite: checked
		return "n" + string(text)
	case bool:
		if v {
			return "true"
		}
		return "false"
	default:
		return ""
	}
}

// plain makes a value string, bool or float64; nil for any other.
func plain(value any) any {
	switch v := value.(type) {
	case string, bool:
		return v
	case json.Number:
		if n, err := v.Float64(); err == nil {
			return n
		}
		return nil
	}
	if v := reflect.ValueOf(value); v.IsValid() {
		switch {
		case v.CanInt():
			return float64(v.Int())
		case v.CanUint():
			return float64(v.Uint())
		case v.CanFloat():
			if f := v.Float() + 0; !math.IsNaN(f) && !math.IsInf(f, 0) { // without the sign of a zero
				return f
			}
		}
	}
	return nil
}

// Encode is the text of a field's value by which stores compare: equal for equal values alone.
func Encode(value any) string { return encode(value) }

// Number is the value of a field as a number, if it is one.
func Number(value any) (float64, bool) {
	n, ok := plain(value).(float64)
	return n, ok
}

// Instant is the value of a field as a time, in microseconds since 1970, if it is a string in RFC 3339.
func Instant(value any) (float64, bool) {
	text, ok := value.(string)
	if !ok || len(text) < len("2006-01-02T15:04:05Z") || !strings.Contains(text, "T") {
		return 0, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, false
	}
	return float64(t.UnixMicro()), true
}

// bounds are those of a range that has passed its checks.
func (r *Range) bounds() (from, to *float64, isTime bool) {
	read := func(v any) *float64 {
		if t, ok := v.(time.Time); ok {
			isTime = true
			n := float64(t.UnixMicro())
			return &n
		}
		if n, ok := Number(v); ok {
			return &n
		}
		return nil
	}
	return read(r.From), read(r.To), isTime
}

// Bounds are the bounds of a range that has passed its checks, nil where it has none, and whether they are times in microseconds
// since 1970.
func (r *Range) Bounds() (from, to *float64, isTime bool) { return r.bounds() }
