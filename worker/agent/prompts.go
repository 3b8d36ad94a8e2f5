package agent

import (
	_ "embed" // of the templates
	"encoding/json"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Templates that are built in. An agent's `prompts` take their place; the format of the reply is always added, so a
// template cannot leave it out.
var (
	//go:embed prompts/plan.txt
	planPrompt string
	//go:embed prompts/plan_format.txt
	planFormat string
	//go:embed prompts/observe.txt
	observePrompt string
	//go:embed prompts/observe_format.txt
	observeFormat string
	//go:embed prompts/summary.txt
	summaryPrompt string

	//go:embed prompts/plan.schema.json
	planSchema []byte
	//go:embed prompts/decision.schema.json
	decisionSchema []byte
)

// maxShownOutputs bounds what a prompt shows of outputs, in bytes, all steps together.
const maxShownOutputs = 32 << 10

// call asks the model. Everything that it sees is in one message, built from the state.
func (r *planRun) call(step int, purpose messages.Purpose) *CallModel {
	c := &CallModel{Step: step, Purpose: purpose}
	if r.Agent.Instructions != "" {
		c.Messages = append(c.Messages, messages.Message{
			Role: messages.RoleSystem, Content: messages.TextContent(r.Agent.Instructions),
		})
	}
	var template, format string
	switch purpose {
	case messages.PurposePlan:
		template, format = planPrompt, planFormat
		c.Format = &Format{Name: "plan", Schema: planSchema}
	case messages.PurposeObserve:
		template, format = observePrompt, observeFormat
		c.Format = &Format{Name: "decision", Schema: decisionSchema}
	case messages.PurposeSummary:
		template = summaryPrompt
	}
	if own := r.Agent.Prompts[string(purpose)]; own != "" {
		template = own + "\n\n"
	}
	c.Messages = append(c.Messages, user(r.fill(template)+r.told()+format))
	if bad := r.rejected(purpose); bad != "" {
		_, err := r.read(purpose, bad)
		c.Messages = append(c.Messages,
			messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent(bad)},
			user(fmt.Sprintf("This is not a valid %s: %s. Answer again with the whole corrected JSON and nothing else.", c.Format.Name, r.wrong(orCut(err)))))
	}
	return c
}

// rejected is the reply that a call shall correct; empty: there is none.
func (r *planRun) rejected(purpose messages.Purpose) string {
	switch {
	case purpose == messages.PurposeSummary || purpose != r.Purpose:
		return ""
	case r.p.Reply != nil:
		return *r.p.Reply
	default:
		return r.p.Rejected
	}
}

func orCut(err error) error {
	if err == nil {
		return &messages.FieldError{Field: "reply", Reason: "it was not accepted"}
	}
	return err
}

func user(text string) messages.Message {
	return messages.Message{Role: messages.RoleUser, Content: messages.TextContent(text)}
}

// fill puts what is known into a template, in one pass: nothing that is put in is looked at again.
func (r *planRun) fill(template string) string {
	var descriptions []string
	for _, id := range r.p.Unseen {
		if step := r.p.Plan.Find(id); step != nil {
			descriptions = append(descriptions, step.Description)
		}
	}
	m := messages.Message{Content: r.Transcript[len(r.Transcript)-1].Content} // the task is all that is ever there
	return strings.NewReplacer(
		"{task.description}", m.Text(),
		"{toolDefinitions}", r.toolDefinitions(),
		"{plan}", r.progress(),
		"{step.description}", strings.Join(descriptions, "; "),
		"{result}", r.outputs(r.p.Unseen),
		"{results}", r.outputs(r.ended()),
	).Replace(template)
}

func (r *planRun) toolDefinitions() string {
	type definition struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	var b strings.Builder
	for _, t := range r.Tools {
		line, err := json.Marshal(definition{t.Name, t.Description, t.InputSchema})
		if err != nil {
			line = []byte(t.Name) // a schema that is no JSON; the set of tools refuses such
		}
		b.WriteString("\n")
		b.Write(line)
	}
	return b.String()
}

// progress is the plan, one step a line.
func (r *planRun) progress() string {
	if r.p.Plan == nil {
		return ""
	}
	var b strings.Builder
	for i := range r.p.Plan.Steps {
		step := &r.p.Plan.Steps[i]
		at := r.p.Steps[step.ID]
		fmt.Fprintf(&b, "- %s (%s", step.ID, r.status(step.ID))
		if step.IsCritical() {
			b.WriteString(", critical")
		}
		fmt.Fprintf(&b, "): %s", strict.Clip(step.Description, maxReason))
		if at.Reason != "" {
			fmt.Fprintf(&b, " [%s]", at.Reason)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (r *planRun) status(id string) string {
	at, known := r.p.Steps[id]
	switch {
	case !known:
		return "pending"
	case at.Status == "":
		return "running"
	default:
		return string(at.Status)
	}
}

// ended are the ids of the steps that have ended, in the order of the plan.
func (r *planRun) ended() []string {
	if r.p.Plan == nil {
		return nil
	}
	var ids []string
	for i := range r.p.Plan.Steps {
		if id := r.p.Plan.Steps[i].ID; r.p.Steps[id].Status != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

func (r *planRun) outputs(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	each := maxShownOutputs / len(ids)
	var b strings.Builder
	for _, id := range ids {
		at := r.p.Steps[id]
		text := at.Output
		if text == "" {
			text = at.Reason
		}
		fmt.Fprintf(&b, "%s (%s): %s\n", id, r.status(id), strict.Clip(text, each))
	}
	return b.String()
}

// joined is the result and the summary of a run without a model's: the outputs of the steps that no other used.
func (r *planRun) joined() (result, summary string) {
	used := map[string]bool{}
	for i := range r.p.Plan.Steps {
		for _, id := range r.p.Plan.Steps[i].DependsOn {
			used[id] = true
		}
	}
	var texts []string
	done := 0
	for i := range r.p.Plan.Steps {
		id := r.p.Plan.Steps[i].ID
		at := r.p.Steps[id]
		if at.Status != messages.StepCompleted {
			continue
		}
		done++
		if !used[id] && at.Output != "" {
			texts = append(texts, at.Output)
		}
	}
	summary = fmt.Sprintf("%d of %d steps completed.\n%s", done, len(r.p.Plan.Steps), strings.TrimSuffix(r.progress(), "\n"))
	if texts == nil {
		return summary, summary
	}
	return strings.Join(texts, "\n\n"), summary
}
