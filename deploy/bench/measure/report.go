package measure

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"time"
)

// Report prints the measurements and keeps what the summary needs. Its first error is kept.
type Report struct {
	out     *json.Encoder
	err     error
	targets []target
}

// target is a number that must not be missed.
type target struct {
	Name    string   `json:"name"`
	Value   float64  `json:"value"`
	AtMost  *float64 `json:"atMost,omitempty"`
	AtLeast *float64 `json:"atLeast,omitempty"`
	Met     bool     `json:"met"`
}

// NewReport prints to out.
func NewReport(out io.Writer) *Report { return &Report{out: json.NewEncoder(out)} }

// Err is the first error of printing.
func (r *Report) Err() error { return r.err }

// Line prints one result.
func (r *Report) Line(v any) {
	if err := r.out.Encode(v); err != nil && r.err == nil {
		r.err = fmt.Errorf("print: %w", err)
	}
}

// AtMost adds a target that value must not exceed.
func (r *Report) AtMost(name string, value, most float64) {
	r.targets = append(r.targets, target{Name: name, Value: value, AtMost: &most, Met: value <= most})
}

// AtLeast adds a target that value must reach.
func (r *Report) AtLeast(name string, value, least float64) {
	r.targets = append(r.targets, target{Name: name, Value: value, AtLeast: &least, Met: value >= least})
}

// Summary prints the last line.
func (r *Report) Summary() error {
	all := true
	for _, t := range r.targets {
		all = all && t.Met
	}
	r.Line(struct {
		Name    string   `json:"name"`
		CPUs    int      `json:"cpus"`
		Targets []target `json:"targets"`
		Met     bool     `json:"met"`
	}{"summary", runtime.NumCPU(), r.targets, all})
	return r.err
}

// Rounded is v with so many digits.
func Rounded(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}

// Millis are milliseconds.
func Millis(d time.Duration) float64 { return Rounded(float64(d.Microseconds())/1000, 3) }

// Megabytes are those of n bytes.
func Megabytes(n uint64) float64 { return Rounded(float64(n)/1e6, 1) }
