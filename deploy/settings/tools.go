package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/credential"
)

const (
	toolsEnv       = "LONGSHORE_TOOLS"
	toolsVersion   = "longshore.run/v1"
	toolsKind      = "Tools"
	maxToolsFile   = 1 << 20
	maxCredentials = 256
	mostParallel   = 1024 // programs at once
)

// Tools say what the tools of a worker may reach beyond the run itself: nothing without the file.
type Tools struct {
	ToolsFile string `env:"LONGSHORE_TOOLS" help:"YAML file that grants tools what they may reach: hosts, databases, servers (default: nothing)"`

	SandboxParallel int    `env:"LONGSHORE_SANDBOX_PARALLEL" help:"programs of tools that run at once, and commands of hooks likewise; others wait (default: the number of CPUs)"`
	SandboxCgroup   string `env:"LONGSHORE_SANDBOX_CGROUP"   help:"folder of cgroup v2 in which the worker may make groups for programs (default: the parent of its own group, where that is delegated)"`

	granted *Granted       // as Load read it
	doc     *document.YAML // where its fields stand
}

// Granted is what the file of LONGSHORE_TOOLS grants.
type Granted struct {
	Credentials *credential.Store
	Retries     map[string]tools.RetryPolicy // by the names of tools
	// Families are the other parts of the file by the names of families of tools. What a part means its family knows.
	Families map[string]json.RawMessage
	Dir      string // of the file: names of files in it are relative to there
	// Path and Home are the variables PATH and HOME, the only ones that processes of tools inherit.
	Path, Home string
}

// Granted is what the file grants; without one, nothing.
func (t *Tools) Granted() *Granted {
	if t.granted == nil {
		return &Granted{}
	}
	return t.granted
}

// Wrong is an error about the tools file that names it, and the line of the field that it is about.
func (t *Tools) Wrong(err error) error {
	if t.doc != nil {
		err = t.doc.Locate(err)
	}
	return Errorf("%s: %s: %s", toolsEnv, t.ToolsFile, oneLine(err.Error()))
}

func (t *Tools) readTools(environ []string) error {
	switch {
	case t.SandboxParallel < 0 || t.SandboxParallel > mostParallel:
		return Errorf("LONGSHORE_SANDBOX_PARALLEL: must be 1 to %d", mostParallel)
	case t.SandboxCgroup != "" && (!filepath.IsAbs(t.SandboxCgroup) || filepath.Clean(t.SandboxCgroup) != t.SandboxCgroup):
		return Errorf("LONGSHORE_SANDBOX_CGROUP: must be a whole path such as /sys/fs/cgroup/longshore, without ..")
	}
	if t.ToolsFile == "" {
		return nil
	}
	data, err := document.Read(t.ToolsFile, maxToolsFile)
	if err != nil {
		return Errorf("%s: %s", toolsEnv, oneLine(err.Error()))
	}
	t.doc, err = document.Only(data, maxToolsFile)
	if errors.Is(err, document.ErrEmpty) {
		err = errors.New("is empty: it needs apiVersion, kind and spec")
	}
	if err != nil {
		return t.Wrong(err)
	}
	if t.granted, err = parseTools(t.doc.JSON, filepath.Dir(t.ToolsFile), environment(environ)); err != nil {
		return t.Wrong(err)
	}
	return nil
}

// parseTools reads a tools file and the secrets that its credentials name.
func parseTools(asJSON []byte, dir string, env map[string]string) (*Granted, error) {
	var file struct {
		APIVersion string                     `json:"apiVersion"`
		Kind       string                     `json:"kind"`
		Spec       map[string]json.RawMessage `json:"spec"`
	}
	if err := strict.Decode(asJSON, &file); err != nil {
		return nil, written(err)
	}
	if file.APIVersion != toolsVersion {
		return nil, &messages.FieldError{Field: "apiVersion", Reason: "must be " + toolsVersion}
	}
	if file.Kind != toolsKind {
		return nil, &messages.FieldError{Field: "kind", Reason: "must be " + toolsKind}
	}
	retries, err := retryPolicies(file.Spec)
	if err != nil {
		return nil, err
	}
	var named map[string]credential.Config
	const field = "credentials"
	if raw, ok := file.Spec[field]; ok {
		if err := strict.Decode(raw, &named); err != nil {
			return nil, strict.Under("spec."+field, err)
		}
		delete(file.Spec, field)
	}
	if len(named) > maxCredentials {
		return nil, &messages.FieldError{Field: "spec.credentials", Reason: fmt.Sprintf("more than %d", maxCredentials)}
	}
	store, err := credential.New(named, func(c credential.Config) (string, error) { return secretOf(c, dir, env) })
	if err != nil {
		return nil, strict.Under("spec", err)
	}
	return &Granted{Credentials: store, Retries: retries, Families: file.Spec, Dir: dir, Path: env["PATH"], Home: env["HOME"]}, nil
}

// retryPolicies takes the part about retries out of a spec.
func retryPolicies(spec map[string]json.RawMessage) (policies map[string]tools.RetryPolicy, _ error) {
	const part, field = "retries", "spec.retries"
	raw, ok := spec[part]
	if !ok {
		return nil, nil
	}
	delete(spec, part)
	if err := strict.Decode(raw, &policies); err != nil {
		return nil, strict.Under(field, err)
	}
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		p := policies[name]
		if err := p.Check(field + "." + strict.Shown(name)); err != nil {
			return nil, err
		}
	}
	return policies, nil
}

// written explains the null of YAML, which is what a name without a value reads as.
func written(err error) error {
	if fe, ok := errors.AsType[*messages.FieldError](err); ok && fe.Reason == "null is not allowed" {
		return &messages.FieldError{Field: fe.Field, Reason: "has no value: write {} for the defaults, or leave it out"}
	}
	return err
}

// secretOf reads the secret of a credential.
func secretOf(c credential.Config, dir string, env map[string]string) (string, error) {
	if c.Env != "" {
		if env[c.Env] == "" {
			return "", fmt.Errorf("%s is not set: set it to the secret", shownVariable(c.Env, "env"))
		}
		return env[c.Env], nil
	}
	name := c.File
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	data, err := document.Read(name, maxKeyFile)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(data))
	if secret == "" {
		return "", fmt.Errorf("the file %s is empty: put the secret into it", strict.Shown(c.File))
	}
	return secret, nil
}
