package traces_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/observability/traces/tracestest"
)

const submitter = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestTrees(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tell func(s *story)
		want string
	}{
		"a crash in a tool call": {func(s *story) {
			s.add(s.started(""), claimed(""))
			s.add(&record.StepStarted{Step: 1})
			s.add(replied(1, "c1"))
			s.add(toolStarted(1, "c1", ""))
			s.add(claimed("")) // another worker
			s.add(returned(1, "c1", "", ""))
			s.add(ended(1, messages.StepCompleted), &record.StepStarted{Step: 2})
			s.add(replied(2), ended(2, messages.StepCompleted), s.finished(2, ""))
		}, `
			invoke_agent reviewer
			  step 1
			    chat gpt-4o
			    execute_tool read_file
			  step 2
			    chat gpt-4o
			`},
		"two waits": {func(s *story) {
			s.add(s.started(""), claimed(""))
			s.add(&record.StepStarted{Step: 1})
			s.add(&record.Parked{Reason: queue.ParkModel})
			s.add(claimed(queue.ParkModel))
			s.add(replied(1, "c1"))
			s.add(&record.Parked{Reason: "approval", Call: "c1"})
			s.add(claimed("approval"))
			s.add(returned(1, "c1", "", messages.CodeApprovalDenied), ended(1, messages.StepCompleted))
			s.add(s.finished(1, ""))
		}, `
			invoke_agent reviewer
			  step 1
			    chat gpt-4o
			    execute_tool read_file !approval_denied
			  wait model
			  wait approval
			`},
		"the submitter's trace": {func(s *story) {
			s.add(s.started(submitter), claimed(""))
			s.add(&record.StepStarted{Step: 1})
			s.add(replied(1), ended(1, messages.StepCompleted), s.finished(1, ""))
		}, `
			(00f067aa0ba902b7) invoke_agent reviewer
			  step 1
			    chat gpt-4o
			`},
		"a plan whose step is made anew": {func(s *story) {
			s.add(s.started(""), claimed(""))
			s.add(&record.StepStarted{Step: 1, StepID: "step-7"}, toolStarted(1, "step-7", "step-7"))
			s.add(returned(1, "step-7", "step-7", messages.CodeToolFailed), &record.StepEnded{Step: 1, StepID: "step-7", Status: messages.StepFailed})
			s.add(&record.StepStarted{Step: 2, Purpose: "reflect"})
			s.add(replied(2), ended(2, messages.StepCompleted))
			s.add(&record.StepStarted{Step: 3, StepID: "step-7"}, toolStarted(3, "step-7", "step-7"))
			s.add(returned(3, "step-7", "step-7", ""), &record.StepEnded{Step: 3, StepID: "step-7", Status: messages.StepCompleted})
			s.add(&record.StepEnded{Step: 4, StepID: "tidy", Status: messages.StepSkipped}, s.finished(4, ""))
		}, `
			invoke_agent reviewer
			  step 7 !_OTHER
			    execute_tool read_file !tool_failed
			  step 2
			    chat gpt-4o
			  step 7
			    execute_tool read_file
			  step tidy
			`},
		"given up in a step": {func(s *story) {
			s.add(s.started(""), claimed(""))
			s.add(&record.StepStarted{Step: 1})
			s.add(replied(1, "c1"))
			s.add(toolStarted(1, "c1", ""))
			s.add(s.finished(1, messages.CodePoison))
		}, `
			invoke_agent reviewer !poison
			  step 1
			    chat gpt-4o
			`},
		"cancelled while it waits": {func(s *story) {
			s.add(s.started(""), claimed(""))
			s.add(&record.StepStarted{Step: 1})
			s.add(&record.Parked{Reason: "answer"})
			s.add(&record.CancelRequested{ID: "x"}, ended(1, messages.StepSkipped), s.finished(1, messages.CodeCancelled))
		}, `
			invoke_agent reviewer !cancelled
			  step 1
			  wait answer
			`},
		"a model that fails": {func(s *story) {
			s.add(s.started(""), claimed(""))
			s.add(&record.StepStarted{Step: 1})
			s.add(&record.ModelFailed{Step: 1, Error: messages.RunError{Code: messages.CodeModelTimeout, Message: hush}},
				ended(1, messages.StepFailed), s.finished(1, messages.CodeModelTimeout))
		}, `
			invoke_agent reviewer !model_timeout
			  step 1 !_OTHER
			    chat !model_timeout
			`},
		"refused": {func(s *story) { s.add(s.started(""), s.finished(0, messages.CodeUnknownAgent)) }, `
			invoke_agent reviewer !unknown_agent
			`},
		"a hostile traceparent": {func(s *story) { // of a log that was written before they were checked
			s.add(s.started("00-\x00-'; drop"), s.finished(0, ""))
		}, `
			invoke_agent reviewer
			`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHall(t)
			h.export()
			tc.tell(h.story("r-1"))
			want := lines(tc.want)
			all := h.collector.Await(strings.Count(want, "\n"))
			if diff := cmp.Diff(want, h.collector.Tree()); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
			for _, s := range all {
				if strings.Contains(s.String(), hush) {
					t.Errorf("a span shows content: %v", s)
				}
			}
		})
	}
}

// The spans of a run are the same however its events are stored.
func TestTreesOfEventsStoredOutOfOrder(t *testing.T) {
	t.Parallel()
	const want = `
		invoke_agent reviewer
		  step 1
		    chat gpt-4o
		    execute_tool read_file
		  wait model
		  wait approval
		`
	for name, order := range map[string]func(e []messages.Event) (first, later []messages.Event){
		"backwards": func(e []messages.Event) (_, _ []messages.Event) { slices.Reverse(e); return e, nil },
		"the end first": func(e []messages.Event) (_, _ []messages.Event) {
			return append([]messages.Event{e[len(e)-1]}, e[:len(e)-1]...), nil
		},
		"the second wait late": func(e []messages.Event) (first, later []messages.Event) {
			i := slices.IndexFunc(e, func(e messages.Event) bool {
				return strings.Contains(string(e.Data), "c1") && e.Name() == messages.EventRunWaiting
			})
			return slices.Delete(slices.Clone(e), i, i+1), e[i : i+1]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHall(t)
			h.export()
			s := h.story("r-1")
			var all []messages.Event
			s.keep = &all
			s.add(s.started(""), claimed(""))
			s.add(&record.StepStarted{Step: 1})
			s.add(&record.Parked{Reason: queue.ParkModel})
			s.add(claimed(queue.ParkModel))
			s.add(replied(1, "c1"))
			s.add(&record.Parked{Reason: "approval", Call: "c1"})
			s.add(claimed("approval"))
			s.add(toolStarted(1, "c1", ""))
			s.add(returned(1, "c1", "", ""), ended(1, messages.StepCompleted))
			s.add(s.finished(1, ""))
			first, later := order(all)
			h.store(first)
			if later != nil {
				h.collector.AwaitNamed("chat gpt-4o") // what was stored first has been looked at
				h.store(later)
			}
			tree := lines(want)
			h.collector.Await(strings.Count(tree, "\n"))
			if diff := cmp.Diff(tree, h.collector.Tree()); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
}

// store stores events in the order they are given.
func (h *hall) store(events []messages.Event) {
	h.t.Helper()
	for i := range events {
		if _, err := h.nc.Request(h.bus.Partitions(bus.StreamEvents).Subject(events[i].Ref(), events[i].Ref().EventSubject(events[i].Name())), record.AppendEvent(nil, &events[i]), 30*time.Second); err != nil {
			h.t.Fatal(err)
		}
	}
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	h := openHall(t)
	h.export()
	s := h.story("r-1")
	s.add(s.started(submitter), claimed(""))
	s.add(&record.StepStarted{Step: 1})
	s.add(replied(1, "c1"))
	s.add(returned(1, "c1", "", ""), ended(1, messages.StepCompleted), s.finished(1, ""))
	h.collector.Await(4)
	got := map[string]string{}
	for _, span := range h.collector.Await(4) {
		for _, a := range span.GetAttributes() {
			got[span.GetName()+" "+a.GetKey()] = tracestest.Attribute(span, a.GetKey())
		}
		got[span.GetName()] = fmt.Sprintf("%s %d ms", span.GetKind(), (span.GetEndTimeUnixNano()-span.GetStartTimeUnixNano())/1e6)
		if id := hex.EncodeToString(span.GetTraceId()); id != submitter[3:35] {
			t.Errorf("%s is in the trace %s", span.GetName(), id)
		}
	}
	root, step, chat, tool := "invoke_agent reviewer", "step 1", "chat gpt-4o", "execute_tool read_file"
	want := map[string]string{
		root: "SPAN_KIND_INTERNAL 3000 ms", step: "SPAN_KIND_INTERNAL 2000 ms", chat: "SPAN_KIND_CLIENT 400 ms", tool: "SPAN_KIND_INTERNAL 200 ms",

		root + " gen_ai.operation.name": "invoke_agent", root + " gen_ai.agent.name": "reviewer", root + " gen_ai.agent.version": "4",
		root + " gen_ai.conversation.id": "s-1", root + " gen_ai.usage.input_tokens": "int_value:200",
		root + " gen_ai.usage.output_tokens": "int_value:40", root + " gen_ai.request.model": "gpt-4o",
		root + " longshore.run.status": "completed", root + " longshore.run.steps": "int_value:1",
		root + " longshore.run.queued_ms": "int_value:1500", root + " longshore.cost_usd": "double_value:0.5",

		step + " longshore.step.number": "int_value:1", step + " longshore.step.id": "step-1", step + " longshore.step.status": "completed",

		chat + " gen_ai.operation.name": "chat", chat + " gen_ai.provider.name": "openai", chat + " gen_ai.request.model": "gpt-4o",
		chat + " gen_ai.response.finish_reasons": `array_value:{values:{string_value:"tool_calls"}}`,
		chat + " gen_ai.usage.input_tokens":      "int_value:100", chat + " gen_ai.usage.output_tokens": "int_value:20",
		chat + " gen_ai.usage.cache_read.input_tokens": "int_value:60", chat + " longshore.cost_usd": "double_value:0.25",

		tool + " gen_ai.operation.name": "execute_tool", tool + " gen_ai.tool.name": "read_file", tool + " gen_ai.tool.call.id": "c1",
	}
	for _, name := range []string{root, step, chat, tool} {
		want[name+" longshore.tenant"], want[name+" longshore.run.id"] = "acme", "r-1"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if got := h.collector.Headers().Get("Authorization"); got != "Bearer s3cret" {
		t.Errorf("the header is %q", got)
	}
}

func TestForkLinksItsOrigin(t *testing.T) {
	t.Parallel()
	for name, traceparent := range map[string]string{"of its own trace": "", "of a submitter's": submitter} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHall(t)
			h.export()
			origin := h.story("r-1")
			origin.add(origin.started(traceparent), claimed(""))
			origin.add(origin.finished(0, ""))
			root := h.collector.Await(1)[0]
			fork := h.story("r-2")
			begin := fork.started("")
			begin.Agent.Name = "fork"
			begin.ForkedFrom = &messages.Origin{Run: "r-1", Seq: 9, Step: 2}
			fork.add(begin, claimed(""))
			fork.add(fork.finished(0, ""))
			got := h.collector.AwaitNamed("invoke_agent fork")
			if len(got.GetLinks()) != 1 || string(got.GetLinks()[0].GetSpanId()) != string(root.GetSpanId()) ||
				string(got.GetLinks()[0].GetTraceId()) != string(root.GetTraceId()) || string(got.GetTraceId()) == string(root.GetTraceId()) {
				t.Errorf("the fork %v does not link %v", got, root)
			}
		})
	}
}

func TestUnsampledIsNotExported(t *testing.T) {
	t.Parallel()
	h := openHall(t)
	h.export()
	off, on := h.story("r-1"), h.story("r-2")
	off.add(off.started(submitter[:53]+"00"), off.finished(0, ""))
	on.add(on.started(""), on.finished(0, ""))
	h.collector.Await(1)
	if diff := cmp.Diff("invoke_agent reviewer\n", h.collector.Tree()); diff != "" {
		t.Error(diff)
	}
}

func TestCollectorThatIsDownLosesNothing(t *testing.T) {
	t.Parallel()
	h := openHall(t)
	h.collector.Refuse(http.StatusServiceUnavailable)
	h.export()
	for _, run := range []string{"r-1", "r-2", "r-3"} {
		s := h.story(run)
		s.add(s.started(""), claimed(""))
		s.add(&record.StepStarted{Step: 1})
		s.add(replied(1), ended(1, messages.StepCompleted), s.finished(1, ""))
	}
	h.collector.AwaitRefused(2)
	if lag, ok, err := h.bus.Partitions(bus.StreamEvents).Lag(t.Context(), "traces"); err != nil || !ok || lag.Messages == 0 {
		t.Errorf("lag: %+v, %v, %v; want some", lag, ok, err)
	}
	h.collector.Forget(2)
	h.collector.Refuse(0)
	h.collector.Await(9)
	want := strings.Repeat("invoke_agent reviewer\n  step 1\n    chat gpt-4o\n", 3)
	if diff := cmp.Diff(want, h.collector.Tree()); diff != "" {
		t.Error(diff)
	}
	if log := h.log.String(); !strings.Contains(log, "answered 503") || strings.Contains(log, "s3cret") {
		t.Errorf("log: %s", log)
	}
}

func TestExporterGoesOnWhereAnotherStopped(t *testing.T) {
	t.Parallel()
	h := openHall(t)
	_, stop := h.export()
	s := h.story("r-1")
	s.add(s.started(""), claimed(""))
	s.add(&record.StepStarted{Step: 1})
	s.add(replied(1))
	h.collector.Await(1)
	stop()
	s.add(ended(1, messages.StepCompleted), &record.StepStarted{Step: 2}) // not exported
	h.export()
	h.export()
	s.add(replied(2), ended(2, messages.StepCompleted), s.finished(2, ""))
	h.collector.Await(5)
	want := "invoke_agent reviewer\n  step 1\n    chat gpt-4o\n  step 2\n    chat gpt-4o\n"
	if diff := cmp.Diff(want, h.collector.Tree()); diff != "" {
		t.Error(diff)
	}
}

// What is no event, or not what its name says, is counted and keeps nothing up. A collector that throws spans away is not
// asked again.
func TestWhatBecomesNoSpan(t *testing.T) {
	t.Parallel()
	h := openHall(t)
	h.collector.Answer([]byte{0x0a, 0x02, 0x08, 0x01}) // partialSuccess: {rejectedSpans: 1}
	h.export()
	junk := h.story("r-0")
	for n, data := range []string{`{"stepId":7}`, `[]`, `{"step":"x"}`} {
		junk.out.Publish(t.Context(), uint64(n+1), slices.Values([]messages.Event{{
			SpecVersion: "1.0", ID: fmt.Sprintf("r-0.%d", n+1), Source: "/tenants/acme", Type: "longshore.step_end.v1", Subject: "r-0",
			Time: noon(), Sequence: strconv.Itoa(n + 1), Data: []byte(data),
		}}))
	}
	if err := junk.out.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := h.story("r-1")
	s.add(s.started(""), s.finished(0, ""))
	h.collector.Await(1)
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(h.log.String(), "threw spans away"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("log: %s", h.log)
		}
	}
	if diff := cmp.Diff("invoke_agent reviewer\n", h.collector.Tree()); diff != "" || h.bus.Skipped() != 3 {
		t.Errorf("%d were skipped: %s", h.bus.Skipped(), diff)
	}
}
