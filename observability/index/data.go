package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/jsonscan"
)

// The data of an event may be long, and little of it is read: the rest is passed over.

// field is a member of an object that is read, and the pointer to where it goes.
type field struct {
	name string
	into any
}

// errType means that a member is not of the type that it should be.
var errType = errors.New("a value of another type")

// readFields reads the members of an object that are asked for, as json.Unmarshal would, except that names are exact. Like there,
// null says nothing.
func readFields(data []byte, fields ...field) error {
	if isNull(bytes.TrimSpace(data)) {
		return nil
	}
	return jsonscan.Members(data, func(name, value []byte) error {
		for i := range fields {
			if string(name) == fields[i].name {
				return store(value, fields[i].into)
			}
		}
		return nil
	})
}

func isNull(value []byte) bool { return string(value) == "null" }

// store reads a value.
func store(value []byte, into any) error {
	if isNull(value) {
		return json.Unmarshal(value, into)
	}
	switch p := into.(type) {
	case *json.RawMessage:
		*p = value
		return nil
	case *string:
		return storeText(value, p)
	case *any: // a text, or nothing that is of interest
		var text string
		if value[0] == '"' {
			if err := storeText(value, &text); err != nil {
				return err
			}
			*p = text
		}
		return nil
	case **float64:
		f, err := strconv.ParseFloat(string(value), 64)
		*p = &f
		return err
	case *int64:
		return storeNumber(value, p)
	case *int:
		var n int64
		err := storeNumber(value, &n)
		*p = int(n)
		return err
	case *bool:
		switch *p = value[0] == 't'; {
		case *p, value[0] == 'f':
			return nil
		default:
			return errType
		}
	case *time.Time:
		return p.UnmarshalJSON(value)
	case *messages.Usage:
		return readFields(value, field{"input", &p.Input}, field{"output", &p.Output}, field{"cacheRead", &p.CacheRead},
			field{"cacheWrite", &p.CacheWrite}, field{"reasoning", &p.Reasoning}, field{"total", &p.Total})
	default:
		return json.Unmarshal(value, into)
	}
}

func storeText(value []byte, into *string) error {
	if len(value) < 2 || value[0] != '"' {
		return errType
	}
	if text := value[1 : len(value)-1]; bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		*into = string(text)
		return nil
	}
	return json.Unmarshal(value, into)
}

func storeNumber(value []byte, into *int64) (err error) {
	*into, err = strconv.ParseInt(string(value), 10, 64)
	return err
}

// The functions below read the data of an event; nil: it cannot be read.

// reply is what is read of a messages.MessageEnd. Its texts are long.
type reply struct {
	StepID   string         `json:"stepId"`
	Usage    messages.Usage `json:"usage"`
	Provider string         `json:"provider"`
	Model    string         `json:"model"`
	Millis   int64          `json:"millis"`
	Cached   bool           `json:"cached"`
	Cost     *float64       `json:"cost"`
}

func readReply(data []byte) *reply {
	d := &reply{}
	return unless(readFields(data, field{"stepId", &d.StepID}, field{"usage", &d.Usage}, field{"provider", &d.Provider}, field{"model", &d.Model},
		field{"millis", &d.Millis}, field{"cached", &d.Cached}, field{"cost", &d.Cost}), d)
}

// call is what is read of a messages.ToolExecution. Its arguments and result are long.
type call struct {
	StepID   string `json:"stepId"`
	ToolName string `json:"toolName"`
	IsError  bool   `json:"isError"`
	Millis   int64  `json:"millis"`
}

func readCall(data []byte) *call {
	d := &call{}
	return unless(readFields(data, field{"stepId", &d.StepID}, field{"toolName", &d.ToolName}, field{"isError", &d.IsError}, field{"millis", &d.Millis}), d)
}

func readStep(data []byte) *messages.Step {
	d := &messages.Step{}
	return unless(readFields(data, field{"stepId", &d.StepID}, field{"step", &d.Step}, field{"status", (*string)(&d.Status)}, field{"reason", &d.Reason}), d)
}

// readQueued reads a messages.RunQueued, without who submitted it.
func readQueued(data []byte) *messages.RunQueued {
	d := &messages.RunQueued{}
	return unless(readFields(data, field{"agent", &d.Agent}, field{"priority", (*string)(&d.Priority)}, field{"sessionId", &d.Session},
		field{"labels", &d.Labels}, field{"input", &d.Input}, field{"queuedAt", &d.QueuedAt}), d)
}

// started is what is read of a messages.RunStarted, which names all tools.
type started struct {
	Model  string              `json:"model"`
	Parent *messages.ParentRef `json:"parent"`
}

func readStarted(data []byte) *started {
	d := &started{}
	return unless(readFields(data, field{"model", &d.Model}, field{"parent", &d.Parent}), d)
}

// readFinished reads of the result in a messages.RunFinished what a row has of it.
func readFinished(data []byte) *messages.AgentResult {
	d := &messages.AgentResult{}
	var result, provenance json.RawMessage
	if readFields(data, field{"result", &result}) != nil || result == nil {
		return nil
	}
	err := readFields(result, field{"id", &d.ID}, field{"success", &d.Success}, field{"result", &d.Result}, field{"error", &d.Error}, field{"startedAt", &d.StartedAt},
		field{"status", (*string)(&d.Status)}, field{"steps", &d.Steps}, field{"tokenUsage", &d.TokenUsage}, field{"costEstimate", &d.CostEstimate},
		field{"summary", &d.Summary}, field{"provenance", &provenance})
	if err == nil && provenance != nil && !isNull(provenance) {
		d.Provenance = &messages.Provenance{}
		err = readFields(provenance, field{"agent", &d.Provenance.Agent}, field{"planner", &d.Provenance.Planner})
	}
	return unless(err, d)
}

// read reads data of which all is of interest.
func read[T any](data []byte) *T {
	d := new(T)
	return unless(json.Unmarshal(data, d), d)
}

func unless[T any](err error, d *T) *T {
	if err != nil {
		return nil
	}
	return d
}
