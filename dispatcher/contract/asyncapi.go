package contract

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// object is a JSON object.
type object = map[string]any

func ref(parts ...string) object { return object{"$ref": "#/" + strings.Join(parts, "/")} }

// AsyncAPI is the AsyncAPI 3.1 document of the subjects that others use, from the side of Longshore: it receives tasks and
// the requests of a table of operations, and sends events, live text, log entries and replies.
func AsyncAPI(version string, ops control.Table) ([]byte, error) {
	described, err := types(ops)
	if err != nil {
		return nil, err
	}
	d := document{schemas: object{}, messages: object{}, channels: object{}, operations: object{}}
	for _, t := range described {
		d.describe(t.name, standalone(t))
		d.messages[t.name] = object{"name": t.name, "title": t.name, "contentType": "application/json", "payload": ref("components", "schemas", t.name)}
	}
	for _, e := range append(events(), happenings()...) {
		name := schemaOf(e)
		d.describe(name, eventSchema(e))
		d.messages[name] = object{
			"name": e.name, "title": e.name, "summary": e.text, "contentType": "application/cloudevents+json",
			"payload": ref("components", "schemas", name),
		}
	}
	d.flows()
	for _, o := range ops.OverNATS() {
		d.request(&o)
	}
	body, err := encode(object{
		"asyncapi": "3.1.0",
		"info": object{
			"title": "Longshore", "version": version,
			"description": "Subjects on NATS: submit tasks to a fleet of agents, follow them, take their results. Every reply may be a " +
				"problem; it then has the headers Nats-Service-Error and Nats-Service-Error-Code.",
		},
		"defaultContentType": "application/json",
		"servers":            object{"nats": object{"host": "127.0.0.1:4222", "protocol": "nats"}},
		"channels":           d.channels, "operations": d.operations,
		"components": object{"messages": d.messages, "schemas": d.schemas},
	})
	if err != nil {
		return nil, fmt.Errorf("describe the subjects: %w", err)
	}
	return body, nil
}

// document is what an AsyncAPI document is made of.
type document struct{ schemas, messages, channels, operations object }

// describe takes a schema in. What it needs of others stands in it, as in the file of its own: the same type may be
// strict in one place and open in another.
func (d *document) describe(name string, schema object) {
	d.schemas[name] = moved(schema, "#/components/schemas/"+name+"/$defs/")
}

// moved is a schema whose references lead to where it stands now.
func moved(schema object, prefix string) any {
	body, err := encode(schema)
	if err != nil {
		return schema // what was generated always encodes
	}
	return rawJSON(strings.ReplaceAll(string(body), `"#/$defs/`, `"`+prefix))
}

// rawJSON is JSON that is there already.
type rawJSON string

// MarshalJSON implements json.Marshaler.
func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func (d *document) channel(name string, channel object, messages ...string) {
	refs := object{}
	for _, m := range messages {
		refs[m] = ref("components", "messages", m)
	}
	channel["messages"] = refs
	d.channels[name] = channel
}

func (d *document) operation(name, action, channel, summary string, more object) {
	op := object{"action": action, "channel": ref("channels", channel), "summary": summary}
	maps.Copy(op, more)
	d.operations[name] = op
}

func namesOf(all []event) (schemas, names []string) {
	for _, e := range all {
		schemas, names = append(schemas, schemaOf(e)), append(names, e.name)
	}
	slices.Sort(names)
	return schemas, names
}

// bundle takes in the message that is several events.
func (d *document) bundle() {
	var kinds []any
	for _, e := range events() {
		if messages.Bundled(e.name) {
			kinds = append(kinds, ref("components", "schemas", schemaOf(e)))
		}
	}
	d.schemas[messages.NameBundle] = object{
		"type": "array", "minItems": 2, "items": object{"oneOf": kinds},
		"description": "Events of one run in the order of their numbers.",
	}
	d.messages[messages.NameBundle] = object{
		"name": messages.NameBundle, "title": messages.NameBundle, "contentType": "application/cloudevents-batch+json",
		"summary": "Several events in one message, from processes that bundle events.", "payload": ref("components", "schemas", messages.NameBundle),
	}
}

// flows are the subjects that are no requests.
func (d *document) flows() {
	tenant := object{"description": "whose it is: " + nameForm, "default": "default"}
	run := object{"description": "id of the run: " + nameForm}
	d.channel("tasks", object{
		"address": "tasks.{priority}.{tenant}.{run}", "title": "Tasks",
		"description": "Of the stream TASKS. Publish with Nats-Msg-Id <tenant>.<run>, Nats-Expected-Last-Subject-Sequence 0 and " +
			"Nats-Expected-Last-Subject-Sequence-Subject lanes.*.*.<tenant>.<run>.",
		"parameters": object{"priority": object{"enum": []string{"high", "normal", "low"}, "default": "normal"}, "tenant": tenant, "run": run},
	}, "task")
	d.operation("publishTask", "receive", "tasks", "Submit a task without the dispatcher.", nil)
	names, kinds := namesOf(events())
	d.bundle()
	d.channel("events", object{
		"address": "events.{tenant}.{run}.{name}", "title": "Events",
		"description": "Of the stream EVENTS: read it, and do not subscribe to the subject alone. In a run, sequence is the order; the " +
			"same event may come again. Ignore names that are not listed. A message with the name bundle is several events.",
		"parameters": object{"tenant": tenant, "run": run, "name": object{
			"enum": append(kinds, messages.NameBundle), "description": "name of the event, or " + messages.NameBundle,
		}},
	}, append(names, messages.NameBundle)...)
	d.operation("followEvents", "send", "events", "What happens in runs.", nil)
	names, kinds = namesOf(happenings())
	d.channel("happenings", object{
		"address": "events.{tenant}._.{name}", "title": "Events about no run",
		"description": "Their subject attribute is _, and their numbers have gaps. Those about agents and prompts are of the tenant default.",
		"parameters":  object{"tenant": tenant, "name": object{"enum": kinds, "description": "name of the event"}},
	}, names...)
	d.operation("followHappenings", "send", "happenings", "What people do beside runs.", nil)
	d.channel("live", object{
		"address": "live.{tenant}.{run}", "title": "Live text",
		"description": "Replies while they are written. In no stream: a message comes once at most.",
		"parameters":  object{"tenant": tenant, "run": run},
	}, "live")
	d.operation("followLive", "send", "live", "Replies while they are written.", nil)
	d.channel("logs", object{
		"address": "logs.{tenant}.{run}", "title": "Log entries",
		"description": "Of the stream LOGS: what processes say about a run, for people. Some may be lost.",
		"parameters":  object{"tenant": tenant, "run": run},
	}, "log-entry")
	d.operation("followLogs", "send", "logs", "What processes say about runs.", nil)
}

// request adds the subject of an operation.
func (d *document) request(o *control.Operation) {
	name := strings.ReplaceAll(o.Name(), ".", "_")
	reply := name + "_reply"
	asks, answers := schemaName(reflect.TypeOf(o.Asks)), schemaName(reflect.TypeOf(o.Reply))
	d.channel(name, object{"address": o.Subject, "title": o.Subject}, asks)
	d.channel(reply, object{"address": nil, "title": "Reply of " + o.Subject, "description": "The inbox that the request names."}, answers, "problem")
	more := object{
		"messages": []object{ref("channels", name, "messages", asks)},
		"reply": object{
			"channel":  ref("channels", reply),
			"messages": []object{ref("channels", reply, "messages", answers), ref("channels", reply, "messages", "problem")},
		},
	}
	if failures := o.FailureText(); failures != "" {
		more["description"] = failures
	}
	d.operation(name, "receive", name, cmp.Or(o.Said, o.Summary)+".", more)
}
