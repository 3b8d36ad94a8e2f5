package messages

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// Defaults of how an agent's loop goes.
const (
	DefaultJSONSteps   = 6 // maxSteps of the planner "json"
	DefaultParallel    = 8
	DefaultRepeatLimit = 3
)

// Limits of how an agent's loop goes.
const (
	maxParallel     = 64
	maxRepeatLimit  = 1000
	minToolTimeout  = Duration(time.Millisecond)
	maxToolTimeout  = Duration(24 * time.Hour)
	maxOutputSchema = 64 << 10 // bytes
	maxPrompt       = 256 << 10
)

// Values of Definition.OnTruncated.
const (
	TruncatedFail     = "fail"
	TruncatedContinue = "continue"
)

// PromptProtocol is the prompt of the planner "json": it tells the model the protocol, and PlaceTools in it stands for
// the list of tools.
const (
	PromptProtocol = "protocol"
	PlaceTools     = "{{tools}}"
)

// prompts are the names that Definition.Prompts may hold, with what a text must hold.
func prompts() map[string][]string {
	return map[string][]string{
		PromptProtocol:      {PlaceTools},
		string(PurposePlan): nil, string(PurposeObserve): nil, string(PurposeSummary): nil,
	}
}

func (d *Definition) setLoopDefaults() {
	if d.OnInvalidOutput == "" {
		d.OnInvalidOutput = OnErrorModel
	}
	if d.OnTruncated == "" {
		d.OnTruncated = TruncatedFail
	}
	if d.Parallel == 0 {
		d.Parallel = DefaultParallel
	}
	if d.RepeatLimit == nil {
		d.RepeatLimit = new(DefaultRepeatLimit)
	}
}

// Together is how many calls of one reply may run at once.
func (d *Definition) Together() int {
	if d.Parallel == 0 {
		return DefaultParallel
	}
	return d.Parallel
}

// RepeatsAllowed is how often in a row the same call may have the same result before the model is told so. At twice as
// often the run fails. 0: as often as it likes.
func (d *Definition) RepeatsAllowed() int {
	if d.RepeatLimit == nil {
		return 0
	}
	return *d.RepeatLimit
}

func (d *Definition) checkLoop() error {
	switch {
	case d.OnInvalidOutput != "" && d.OnInvalidOutput != OnErrorModel && d.OnInvalidOutput != OnErrorFail:
		return &FieldError{Field: "onInvalidOutput", Reason: "must be model or fail"}
	case d.OnTruncated != "" && d.OnTruncated != TruncatedFail && d.OnTruncated != TruncatedContinue:
		return &FieldError{Field: "onTruncated", Reason: "must be fail or continue"}
	case d.ToolTimeout != 0 && (d.ToolTimeout < minToolTimeout || d.ToolTimeout > maxToolTimeout):
		return &FieldError{Field: "toolTimeout", Reason: "must be 1ms to 24h, or 0 for what the worker and the tool say"}
	case d.Parallel < 0 || d.Parallel > maxParallel:
		return &FieldError{Field: "parallel", Reason: fmt.Sprintf("must be 1 to %d", maxParallel)}
	case d.RepeatsAllowed() < 0 || d.RepeatsAllowed() > maxRepeatLimit:
		return &FieldError{Field: "repeatLimit", Reason: fmt.Sprintf("must be 0 to %d", maxRepeatLimit)}
	}
	known := prompts()
	for _, name := range slices.Sorted(maps.Keys(d.Prompts)) {
		at := "prompts." + strict.Shown(name)
		must, ok := known[name]
		if !ok {
			return &FieldError{Field: at, Reason: "is unknown; known: " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")}
		}
		if err := strict.CheckText(at, d.Prompts[name], maxPrompt); err != nil {
			return err
		}
		if d.Prompts[name] == "" {
			return &FieldError{Field: at, Reason: "is empty"}
		}
		for _, place := range must {
			if !strings.Contains(d.Prompts[name], place) {
				return &FieldError{Field: at, Reason: "must hold " + place}
			}
		}
	}
	return checkOutputSchema(d.OutputSchema)
}

// checkOutputSchema checks that it may be one. Whether answers can be checked by it, CheckSchema tells.
func checkOutputSchema(schema json.RawMessage) error {
	switch {
	case len(schema) == 0:
		return nil
	case len(schema) > maxOutputSchema:
		return &FieldError{Field: "outputSchema", Reason: fmt.Sprintf("larger than %d bytes", maxOutputSchema)}
	case schema[0] != '{':
		return &FieldError{Field: "outputSchema", Reason: "must be an object"}
	}
	var free json.RawMessage // what was not decoded may hold anything
	return strict.Under("outputSchema", strict.DecodeDepth(strict.Body, maxTaskDepth-1, schema, &free))
}

// Purpose says what a model call is for. The empty one is a turn of native tool calling.
type Purpose string

// Purposes of the calls of planner "plan".
const (
	PurposePlan    Purpose = "plan"
	PurposeObserve Purpose = "observe"
	PurposeSummary Purpose = "summary"
)
