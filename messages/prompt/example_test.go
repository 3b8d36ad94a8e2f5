package prompt_test

import (
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/prompt"
)

func ExampleRender() {
	p := messages.Prompt{ID: "greeting", Text: "Greet {who} in {language}.", RequiredVars: []string{"who"}}
	p.SetDefaults()
	fmt.Println(prompt.Render(p, prompt.Vars{"who": "the harbour", "language": "Low German"}, prompt.Options{}))
	fmt.Println(prompt.Render(p, prompt.Vars{"language": "Low German"}, prompt.Options{}))
	fmt.Println(prompt.Render(p, prompt.Vars{"who": "the harbour"}, prompt.Options{ThrowOnMissing: true}))
	// Output:
	// Greet the harbour in Low German. <nil>
	//  vars: missing: who
	//  vars: missing: language
}

// Before a prompt is stored: all that is wrong with it at once, and the variables that it names.
func ExampleValidate() {
	p := messages.Prompt{ID: "list", Engine: "liquid", Text: "{% for item in items %}- {{ item | upcase }}\n{% endfor %}{{ closing }}"}
	p.SetDefaults()
	verdict := prompt.Validate(p, nil)
	fmt.Println(verdict.OK, verdict.Vars)

	p.Text = "{% for item in items %}"
	verdict = prompt.Validate(p, nil)
	fmt.Println(verdict.OK, verdict.Errors)
	// Output:
	// true [closing items]
	// false [text: Liquid error (line 1): unterminated "for" block in {% for item in items %}]
}
