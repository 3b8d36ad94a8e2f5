package confined

import (
	"errors"
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/tools"
)

// Told is the Result of a program: how it ended, and what it wrote. Anything but exit code 0 is an error.
func (r *Ran) Told() tools.Result {
	var b strings.Builder
	b.WriteString(r.Ending())
	section(&b, "stdout", r.Stdout)
	section(&b, "stderr", r.Stderr)
	if len(r.Stdout)+len(r.Stderr) == 0 {
		b.WriteString("\n(no output)")
	}
	if r.Truncated {
		b.WriteString("\n(There was more output, which is lost.)")
	}
	return tools.Result{Content: messages.TextContent(b.String()), IsError: !r.Clean(), Meta: r.Meta()}
}

func section(b *strings.Builder, name string, text []byte) {
	if len(text) > 0 {
		b.WriteString("\n" + name + ":\n" + strings.TrimSuffix(Text(text), "\n"))
	}
}

// Text is output as a model may be told it.
func Text(out []byte) string { return strings.ToValidUTF8(string(out), "\uFFFD") }

// Clean reports whether the program ended by itself with exit code 0.
func (r *Ran) Clean() bool {
	return r.Reason == process.Exited && r.Signal == "" && r.ExitCode == 0
}

// Ending says how the program ended, such as "exit code 1".
func (r *Ran) Ending() string {
	stopped := func(format string, args ...any) string {
		return "stopped: " + fmt.Sprintf(format, args...)
	}
	switch r.Reason {
	case process.Exited:
		if r.Signal != "" {
			return "ended by the signal " + r.Signal
		}
		return fmt.Sprintf("exit code %d", r.ExitCode)
	case process.Timeout:
		return stopped("it ran for longer than %v", r.Limits.Wall)
	case process.CPULimit:
		return stopped("it used more than %v of CPU time", r.Limits.CPU)
	case process.MemoryLimit:
		return stopped("it used more memory than it may")
	case process.FileLimit:
		return stopped("it wrote a file that is larger than it may be")
	case process.DiskLimit:
		return stopped("its files together are larger, or more, than they may be")
	case process.OutputLimit:
		return stopped("it wrote more output than it may")
	case process.Violation:
		return stopped("it made a system call that is never allowed")
	case process.Canceled:
		return stopped("the call was cancelled")
	default:
		return stopped("%s", string(r.Reason))
	}
}

// Meta is what people and programs are told.
func (r *Ran) Meta() map[string]any {
	m := map[string]any{
		"exitCode": r.ExitCode, "reason": string(r.Reason), "durationMillis": r.Usage.Wall.Milliseconds(), "cpuMillis": r.Usage.CPU.Milliseconds(),
		"layers": r.Layers.String(),
	}
	if r.Usage.Memory > 0 {
		m["maxMemory"] = r.Usage.Memory
	}
	if r.Signal != "" {
		m["signal"] = r.Signal
	}
	if r.Truncated {
		m["truncated"] = true
	}
	if len(r.Hosts) > 0 {
		m["hosts"] = r.Hosts
	}
	return m
}

// Refusal is the Result of an error of Run that the model can correct; false: it is the platform's.
func Refusal(err error) (tools.Result, bool) {
	if wrong, ok := errors.AsType[*process.CommandError](err); ok {
		r := tools.Failure("Not run: " + wrong.Error())
		r.Code = messages.CodeInvalidInput
		return r, true
	}
	return tools.Result{}, false
}
