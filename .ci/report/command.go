package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// command is one `go test`.
type command struct{ environment, flags, packages []string }

func commands(args []string) (out []command) {
	for len(args) > 0 {
		end := slices.Index(args, "--")
		if end < 0 {
			end = len(args)
		}
		var c command
		for _, a := range args[:end] {
			switch {
			case strings.HasPrefix(a, "-"):
				c.flags = append(c.flags, a)
			case strings.Contains(a, "="):
				c.environment = append(c.environment, a)
			default:
				c.packages = append(c.packages, a)
			}
		}
		out = append(out, c)
		args = args[min(end+1, len(args)):]
	}
	return out
}

// lines runs the command and hands on each line of its output, from one goroutine. Its exit status is an error, also
// if only tests failed.
func (c command) lines(line func([]byte)) error {
	cmd := exec.Command("go", slices.Concat([]string{"test", "-json"}, c.flags, c.packages)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), c.environment...), os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	in := bufio.NewScanner(stdout)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		line(in.Bytes())
	}
	if in.Err() != nil {
		_ = cmd.Process.Kill()
		return errors.Join(in.Err(), cmd.Wait())
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go test %s: %w", strings.Join(c.flags, " "), err)
	}
	return nil
}
