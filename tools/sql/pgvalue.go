package sql

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// pgTypes writes values of PostgreSQL, which come as text, as JSON. Only one goroutine uses it.
type pgTypes struct{ known *pgtype.Map }

func newPgTypes() *pgTypes { return &pgTypes{pgtype.NewMap()} }

func (t *pgTypes) columns(fields []pgconn.FieldDescription) []column {
	out := make([]column, len(fields))
	for i, f := range fields {
		out[i].Name = f.Name
		if known, ok := t.known.TypeForOID(f.DataTypeOID); ok {
			out[i].Type = known.Name
			if element, isArray := strings.CutPrefix(known.Name, "_"); isArray {
				out[i].Type = element + "[]"
			}
		}
	}
	return out
}

// value is exact: what a JSON number might not keep is text, as PostgreSQL writes it.
func (t *pgTypes) value(oid uint32, v []byte) json.RawMessage {
	if v == nil {
		return json.RawMessage("null")
	}
	switch oid {
	case pgtype.BoolOID:
		return json.RawMessage(strconv.FormatBool(string(v) == "t"))
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return integer(n)
		}
	case pgtype.Float4OID, pgtype.Float8OID: // the shortest text that is the same number; NaN and Infinity are no JSON
		if json.Valid(v) {
			return bytes.Clone(v)
		}
	case pgtype.JSONOID, pgtype.JSONBOID:
		var line bytes.Buffer
		if json.Compact(&line, v) == nil {
			return line.Bytes()
		}
	case pgtype.ByteaOID:
		if digits, ok := bytes.CutPrefix(v, []byte(`\x`)); ok {
			if data, err := hex.DecodeString(string(digits)); err == nil {
				return binary(data)
			}
		}
	default:
		if known, ok := t.known.TypeForOID(oid); ok {
			if a, ok := known.Codec.(*pgtype.ArrayCodec); ok && a.ElementType.OID != pgtype.BoxOID { // its elements are parted by ;
				if list, ok := t.array(a.ElementType.OID, string(v)); ok {
					return list
				}
			}
		}
	}
	return text(string(v))
}

// array is an array as a list; false of one that is not written as usual, such as with bounds of its own.
func (t *pgTypes) array(element uint32, in string) (list json.RawMessage, ok bool) {
	rest, ok := strings.CutPrefix(in, "{")
	if !ok {
		return nil, false
	}
	out := []byte{'['}
	for depth, first := 1, true; ; {
		if rest == "" {
			return nil, false
		}
		switch {
		case rest[0] == '}':
			out, rest, first = append(out, ']'), rest[1:], false
			if depth--; depth == 0 {
				return out, rest == ""
			}
			continue
		case rest[0] == ',' && !first:
			out, rest = append(out, ','), rest[1:]
		case !first:
			return nil, false
		}
		if strings.HasPrefix(rest, "{") {
			if depth++; depth > maxDimensions {
				return nil, false
			}
			out, rest, first = append(out, '['), rest[1:], true
			continue
		}
		item, isNull, after, ok := arrayItem(rest)
		if !ok {
			return nil, false
		}
		rest, first = after, false
		if isNull {
			out = append(out, "null"...)
			continue
		}
		out = append(out, t.value(element, []byte(item))...)
	}
}

// maxDimensions is what PostgreSQL allows of an array.
const maxDimensions = 6

// arrayItem reads one element.
func arrayItem(in string) (item string, isNull bool, rest string, ok bool) {
	if !strings.HasPrefix(in, `"`) {
		end := strings.IndexAny(in, ",}")
		if end < 1 {
			return "", false, "", false
		}
		return in[:end], in[:end] == "NULL", in[end:], true
	}
	var b strings.Builder
	for i := 1; i < len(in); i++ {
		switch in[i] {
		case '"':
			return b.String(), false, in[i+1:], true
		case '\\':
			if i++; i == len(in) {
				return "", false, "", false
			}
		}
		b.WriteByte(in[i])
	}
	return "", false, "", false
}
