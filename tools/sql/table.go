package sql

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// table is a result within its bounds, as it is written for a model.
type table struct {
	rows, bytes int // at most

	columns   []column
	kept      []json.RawMessage // rows
	size      int
	truncated bool
}

type column struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
}

// maxColumns bounds what a row costs before its size is known.
const maxColumns = 2000

// head takes the columns.
func (t *table) head(columns []column) {
	t.columns = columns
	for i := range columns {
		columns[i].Name = string(bytes.ToValidUTF8([]byte(columns[i].Name), []byte("\uFFFD")))
		t.size += len(columns[i].Name) + len(columns[i].Type) + len(`{"name":"","type":""},`)
	}
}

// add takes a row, and reports whether there is room for another one.
func (t *table) add(values []json.RawMessage) bool {
	size := 3 // brackets and a line break
	for _, v := range values {
		size += len(v) + 1
	}
	if len(t.kept) == t.rows || t.size+size > t.bytes {
		t.truncated = true
		return false
	}
	t.size += size
	row := make([]byte, 0, size)
	row = append(row, '[')
	for i, v := range values {
		if i > 0 {
			row = append(row, ',')
		}
		row = append(row, v...)
	}
	t.kept = append(t.kept, append(row, ']'))
	return true
}

// text is the table as JSON, a row a line; changed is given after a change.
func (t *table) text(changed *int64) string {
	var out bytes.Buffer
	out.WriteByte('{')
	if changed != nil {
		out.WriteString(`"changed":` + strconv.FormatInt(*changed, 10))
	}
	if len(t.columns) > 0 {
		if changed != nil {
			out.WriteByte(',')
		}
		out.WriteString(`"columns":`)
		out.Write(encoded(t.columns))
		out.WriteString(`,"rows":[`)
		for i, row := range t.kept {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteByte('\n')
			out.Write(row)
		}
		out.WriteString(`],"truncated":` + strconv.FormatBool(t.truncated))
	}
	out.WriteByte('}')
	return out.String()
}

// encoded is JSON without escapes for HTML.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return json.RawMessage("null") // no value here is one that JSON lacks
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// maxSafe is the largest integer that a JSON number keeps in every program.
const maxSafe = 1 << 53

func integer(n int64) json.RawMessage {
	text := strconv.FormatInt(n, 10)
	if n > maxSafe || n < -maxSafe {
		return encoded(text)
	}
	return json.RawMessage(text)
}

func float(f float64) json.RawMessage {
	switch {
	case math.IsNaN(f):
		return json.RawMessage(`"NaN"`)
	case math.IsInf(f, 1):
		return json.RawMessage(`"Infinity"`)
	case math.IsInf(f, -1):
		return json.RawMessage(`"-Infinity"`)
	default:
		return encoded(f)
	}
}

func text(s string) json.RawMessage {
	if !utf8.ValidString(s) {
		return binary([]byte(s))
	}
	return encoded(s)
}

func binary(b []byte) json.RawMessage {
	return json.RawMessage(`{"base64":"` + base64.StdEncoding.EncodeToString(b) + `"}`)
}
