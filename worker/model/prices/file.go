package prices

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/strict"
)

// Version of the file format.
const Version = 1

// Currency is the only one there is.
const Currency = "USD"

// Bounds of a file.
const (
	maxFile   = 4 << 20 // bytes
	maxPrices = 10_000
	maxModels = 1_000 // names of one price
	maxName   = 256   // bytes
	maxAmount = 1e6   // US dollars per million tokens
)

// File is a price table as it is written, in JSON or YAML.
type File struct {
	Version  int     `json:"version"`
	Currency string  `json:"currency"`
	Date     string  `json:"date"`              // when the prices were true, as 2006-01-02
	Source   string  `json:"source"`            // where they come from
	Replace  bool    `json:"replace,omitempty"` // of an operator's file: the built-in prices do not count
	Prices   []Price `json:"prices"`
}

// Price is what tokens of some models cost, in US dollars per million.
type Price struct {
	Provider string   `json:"provider"` // family, as replies name it: openai, anthropic, scripted
	Models   []string `json:"models"`   // as the provider names them; a * at the end stands for any rest
	Input    *float64 `json:"input"`
	Output   *float64 `json:"output"`
	// Absent: CacheRead and CacheWrite cost what Input does, Reasoning what Output does.
	CacheRead  *float64 `json:"cacheRead,omitempty"`
	CacheWrite *float64 `json:"cacheWrite,omitempty"`
	Reasoning  *float64 `json:"reasoning,omitempty"`
}

//go:embed builtin.json
var builtin []byte

// Builtin is the table of a worker whose operator gives no file.
func Builtin() (*Table, error) {
	f, err := Parse(builtin)
	if err != nil {
		return nil, fmt.Errorf("built-in prices: %w", err)
	}
	return newTable(f), nil
}

// Load is the built-in table with the operator's file before it, or in its place if the file says replace. An empty
// name is the built-in table.
func Load(name string) (*Table, error) {
	if name == "" {
		return Builtin()
	}
	data, err := document.Read(name, maxFile)
	if err != nil {
		return nil, err
	}
	own, err := Parse(data)
	if err != nil {
		return nil, err
	}
	if own.Replace {
		return newTable(own), nil
	}
	base, err := Parse(builtin)
	if err != nil {
		return nil, fmt.Errorf("built-in prices: %w", err)
	}
	return newTable(own, base), nil
}

// Parse reads a file strictly: the error names the field that is wrong.
func Parse(data []byte) (*File, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("larger than %d bytes", maxFile)
	}
	if json.Valid(data) {
		return parse(data)
	}
	doc, err := document.Only(data, maxFile)
	if err != nil {
		return nil, err
	}
	f, err := parse(doc.JSON)
	return f, doc.Locate(err)
}

func parse(asJSON []byte) (*File, error) {
	var f File
	if err := strict.Decode(asJSON, &f); err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	return &f, nil
}

// check returns a *messages.FieldError.
func (f *File) check() error {
	_, dateErr := time.Parse(time.DateOnly, f.Date)
	switch {
	case f.Version != Version:
		return &messages.FieldError{Field: "version", Reason: fmt.Sprintf("must be %d", Version)}
	case f.Currency != Currency:
		return &messages.FieldError{Field: "currency", Reason: "must be " + Currency}
	case dateErr != nil:
		return &messages.FieldError{Field: "date", Reason: "must be a day such as 2026-01-02"}
	case f.Source == "" || len(f.Source) > maxName:
		return &messages.FieldError{Field: "source", Reason: "must say where the prices come from"}
	case len(f.Prices) > maxPrices:
		return &messages.FieldError{Field: "prices", Reason: fmt.Sprintf("more than %d", maxPrices)}
	}
	seen := map[[2]string]bool{}
	for i := range f.Prices {
		if err := f.Prices[i].check(fmt.Sprintf("prices[%d].", i), seen); err != nil {
			return err
		}
	}
	return nil
}

func (p *Price) check(path string, seen map[[2]string]bool) error {
	if p.Provider == "" || len(p.Provider) > maxName {
		return &messages.FieldError{Field: path + "provider", Reason: "must be a family such as openai or anthropic"}
	}
	if len(p.Models) == 0 || len(p.Models) > maxModels {
		return &messages.FieldError{Field: path + "models", Reason: fmt.Sprintf("must be 1 to %d names", maxModels)}
	}
	for i, m := range p.Models {
		field := fmt.Sprintf("%smodels[%d]", path, i)
		switch {
		case m == "" || len(m) > maxName:
			return &messages.FieldError{Field: field, Reason: fmt.Sprintf("must be 1 to %d bytes", maxName)}
		case strings.Contains(strings.TrimSuffix(m, "*"), "*"):
			return &messages.FieldError{Field: field, Reason: "a * may stand at the end only"}
		case seen[[2]string{p.Provider, m}]:
			return &messages.FieldError{Field: field, Reason: "has a price already"}
		}
		seen[[2]string{p.Provider, m}] = true
	}
	for _, a := range []struct {
		name   string
		usd    *float64
		needed bool
	}{
		{"input", p.Input, true},
		{"output", p.Output, true},
		{"cacheRead", p.CacheRead, false},
		{"cacheWrite", p.CacheWrite, false},
		{"reasoning", p.Reasoning, false},
	} {
		switch {
		case a.usd == nil && a.needed:
			return &messages.FieldError{Field: path + a.name, Reason: "is missing: a price that is not known is left out as a whole"}
		case a.usd != nil && (!(*a.usd >= 0) || *a.usd > maxAmount):
			return &messages.FieldError{Field: path + a.name, Reason: fmt.Sprintf("must be 0 to %.0f US dollars per million tokens", maxAmount)}
		}
	}
	return nil
}
