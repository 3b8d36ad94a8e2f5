package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

type root struct {
	Of float64 `json:"of" jsonschema:"a number that is not negative"`
}

// squareRoot says what the model can correct in its result. An error would be the platform's own failure.
func squareRoot(_ context.Context, _ tools.Call, in root) (tools.Result, error) {
	if in.Of < 0 {
		return tools.Failure("there is no real root of a negative number"), nil
	}
	return tools.Text(fmt.Sprint(math.Sqrt(in.Of))), nil
}

// A function with a struct of arguments is a tool. Its schema is the struct's, and wrong arguments never reach it.
func ExampleFunc() {
	tool, err := tools.Func(messages.ToolSpec{Name: "square_root", Description: "The square root.", Effect: messages.EffectRead}, squareRoot)
	if err != nil {
		panic(err)
	}
	set, err := tools.NewSet(tool)
	if err != nil {
		panic(err)
	}
	allowed, err := set.Specs([]string{"square_root"})
	if err != nil {
		panic(err)
	}
	for _, written := range []string{`{"of": 2.25}`, `{"of": -1}`, `{"of": "nine"}`, `{"number": 9}`} {
		arguments, wrong := set.Check(messages.ToolCall{ID: "c-1", Name: "square_root", Arguments: written}, allowed)
		if wrong != nil {
			fmt.Println("refused:", wrong.Content[0].Text)
			continue
		}
		result, err := set.Call(context.Background(), "square_root", tools.Call{ID: "c-1", Arguments: arguments})
		if err != nil {
			panic(err)
		}
		fmt.Println(result.Content[0].Text, result.IsError)
	}
	// Output:
	// 1.5 false
	// there is no real root of a negative number true
	// refused: Invalid arguments for square_root: "of" must be a number, not a string.
	// refused: Invalid arguments for square_root: "of" is missing; "number" is unknown (known: of).
}

// A tool that says what its calls are about has those on different things run together, and those on one thing in turn.
func ExampleFuncOn() {
	type note struct {
		Path string `json:"path"`
		Text string `json:"text"`
	}
	tool, err := tools.FuncOn(messages.ToolSpec{Name: "note", Description: "Replace a note.", Effect: messages.EffectIdempotent},
		func(in note) string { return in.Path },
		func(context.Context, tools.Call, note) (tools.Result, error) { return tools.Text("written"), nil })
	if err != nil {
		panic(err)
	}
	set, err := tools.NewSet(tool)
	if err != nil {
		panic(err)
	}
	a := set.Claim("note", json.RawMessage(`{"path": "a.md", "text": "one"}`))
	b := set.Claim("note", json.RawMessage(`{"path": "b.md", "text": "one"}`))
	again := set.Claim("note", json.RawMessage(`{"path": "a.md", "text": "two"}`))
	fmt.Println("two notes:", a.Beside(b))
	fmt.Println("one note twice:", a.Beside(again))
	// Output:
	// two notes: true
	// one note twice: false
}
