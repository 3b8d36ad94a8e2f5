package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/messages/hosts"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	policyEnv        = "LONGSHORE_POLICY"
	policyKind       = "Policy"
	maxPolicyFile    = 1 << 20
	maxPolicyTenants = 10_000
)

// Policy is the rules that an operator sets for all runs, and for those of single tenants. Workers hold runs to them, and dispatchers what clients
// write to long-term memory.
type Policy struct {
	PolicyFile string `env:"LONGSHORE_POLICY" help:"YAML file with rules for all runs and for those of tenants: tools, hosts, content, approvals (default: none)"`

	rules *PolicyRules // as Load read it
}

// PolicyRules is what a policy file says.
type PolicyRules struct {
	Fleet   *messages.Policy            `json:"fleet,omitempty"`
	Tenants map[string]*messages.Policy `json:"tenants,omitempty"`
}

// Rules are those of the fleet and of a tenant; either may be nil.
func (p *Policy) Rules(tenant string) (fleet, own *messages.Policy) {
	if p.rules == nil {
		return nil, nil
	}
	return p.rules.Fleet, p.rules.Tenants[tenant]
}

func (p *Policy) readPolicy() error {
	if p.PolicyFile == "" {
		return nil
	}
	data, err := document.Read(p.PolicyFile, maxPolicyFile)
	if err != nil {
		return Errorf("%s: %s", policyEnv, oneLine(err.Error()))
	}
	if p.rules, err = ParsePolicy(data); err != nil {
		return Errorf("%s: %s: %s", policyEnv, p.PolicyFile, oneLine(err.Error()))
	}
	return nil
}

// ParsePolicy reads a policy file, strictly. A mistake in the content is a *messages.FieldError.
func ParsePolicy(data []byte) (*PolicyRules, error) {
	doc, err := document.Only(data, maxPolicyFile)
	if errors.Is(err, document.ErrEmpty) {
		return nil, errors.New("is empty: it needs apiVersion, kind and spec")
	} else if err != nil {
		return nil, err
	}
	rules, err := readPolicy(doc.JSON)
	return rules, doc.Locate(err)
}

func readPolicy(asJSON []byte) (*PolicyRules, error) {
	var file struct {
		APIVersion string      `json:"apiVersion"`
		Kind       string      `json:"kind"`
		Spec       PolicyRules `json:"spec"`
	}
	if err := strict.Decode(asJSON, &file); err != nil {
		return nil, err
	}
	if file.APIVersion != toolsVersion {
		return nil, &messages.FieldError{Field: "apiVersion", Reason: "must be " + toolsVersion}
	}
	if file.Kind != policyKind {
		return nil, &messages.FieldError{Field: "kind", Reason: "must be " + policyKind}
	}
	if file.Spec.Fleet != nil {
		if err := checkPolicy("spec.fleet", file.Spec.Fleet); err != nil {
			return nil, err
		}
	}
	if len(file.Spec.Tenants) > maxPolicyTenants {
		return nil, &messages.FieldError{Field: "spec.tenants", Reason: fmt.Sprintf("more than %d", maxPolicyTenants)}
	}
	for _, tenant := range slices.Sorted(maps.Keys(file.Spec.Tenants)) {
		field := "spec.tenants." + strict.Shown(tenant)
		if err := strict.CheckToken(field, tenant); err != nil {
			return nil, err
		}
		p := file.Spec.Tenants[tenant]
		if p == nil {
			return nil, &messages.FieldError{Field: field, Reason: "is empty"}
		}
		if err := checkPolicy(field, p); err != nil {
			return nil, err
		}
	}
	return &file.Spec, nil
}

// checkPolicy is Check, and whether all hosts can be looked up: no run could begin under rules that cannot be read.
func checkPolicy(field string, p *messages.Policy) error {
	if err := p.Check(field); err != nil {
		return err
	}
	if _, err := hosts.Parse(p.Hosts); err != nil {
		return &messages.FieldError{Field: field + ".hosts", Reason: err.Error()}
	}
	for i := range p.Approve {
		if _, err := hosts.Parse(p.Approve[i].Hosts); err != nil {
			return &messages.FieldError{Field: fmt.Sprintf("%s.approve[%d].hosts", field, i), Reason: err.Error()}
		}
	}
	return nil
}
