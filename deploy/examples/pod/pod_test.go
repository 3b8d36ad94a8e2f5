// Package pod_test checks the manifest in this folder.
package pod_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

// The types are those of Kubernetes, as far as the manifest needs them: another field, or one that is misspelt, is an error.
type (
	meta struct {
		Name      string            `yaml:"name"`
		Namespace string            `yaml:"namespace"`
		Labels    map[string]string `yaml:"labels"`
	}
	head struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   meta   `yaml:"metadata"`
	}
	runtimeClass struct {
		head    `yaml:",inline"`
		Handler string `yaml:"handler"`
	}
	networkPolicy struct {
		head `yaml:",inline"`
		Spec struct {
			PodSelector map[string]any `yaml:"podSelector"`
			PolicyTypes []string       `yaml:"policyTypes"`
		} `yaml:"spec"`
	}
	job struct {
		head `yaml:",inline"`
		Spec struct {
			BackoffLimit            *int `yaml:"backoffLimit"`
			Completions             int  `yaml:"completions"`
			Parallelism             int  `yaml:"parallelism"`
			ActiveDeadlineSeconds   int  `yaml:"activeDeadlineSeconds"`
			TTLSecondsAfterFinished int  `yaml:"ttlSecondsAfterFinished"`
			Template                struct {
				Metadata meta `yaml:"metadata"`
				Spec     pod  `yaml:"spec"`
			} `yaml:"template"`
		} `yaml:"spec"`
	}
	pod struct {
		RuntimeClassName              string      `yaml:"runtimeClassName"`
		RestartPolicy                 string      `yaml:"restartPolicy"`
		TerminationGracePeriodSeconds int         `yaml:"terminationGracePeriodSeconds"`
		AutomountServiceAccountToken  *bool       `yaml:"automountServiceAccountToken"`
		EnableServiceLinks            *bool       `yaml:"enableServiceLinks"`
		HostNetwork                   bool        `yaml:"hostNetwork"`
		HostPID                       bool        `yaml:"hostPID"`
		HostIPC                       bool        `yaml:"hostIPC"`
		SecurityContext               security    `yaml:"securityContext"`
		Containers                    []container `yaml:"containers"`
		Volumes                       []struct {
			Name     string `yaml:"name"`
			EmptyDir *struct {
				Medium    string `yaml:"medium"`
				SizeLimit string `yaml:"sizeLimit"`
			} `yaml:"emptyDir"`
		} `yaml:"volumes"`
	}
	security struct {
		RunAsNonRoot             bool  `yaml:"runAsNonRoot"`
		RunAsUser                int   `yaml:"runAsUser"`
		RunAsGroup               int   `yaml:"runAsGroup"`
		FSGroup                  int   `yaml:"fsGroup"`
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		Privileged               bool  `yaml:"privileged"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct {
			Drop []string `yaml:"drop"`
		} `yaml:"capabilities"`
		SeccompProfile struct {
			Type string `yaml:"type"`
		} `yaml:"seccompProfile"`
	}
	container struct {
		Name       string   `yaml:"name"`
		Image      string   `yaml:"image"`
		Command    []string `yaml:"command"`
		Args       []string `yaml:"args"`
		WorkingDir string   `yaml:"workingDir"`
		Env        []struct {
			Name  string `yaml:"name"`
			Value string `yaml:"value"`
		} `yaml:"env"`
		SecurityContext security `yaml:"securityContext"`
		Resources       struct {
			Requests map[string]string `yaml:"requests"`
			Limits   map[string]string `yaml:"limits"`
		} `yaml:"resources"`
		VolumeMounts []struct {
			Name      string `yaml:"name"`
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}
)

func documents(t *testing.T) [][]byte {
	t.Helper()
	text, err := os.ReadFile("job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(text, []byte("\n---\n"))
}

func strictly(t *testing.T, text []byte, into any) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Fatalf("there is more: %v", err)
	}
}

func TestManifest(t *testing.T) {
	docs := documents(t)
	if len(docs) != 3 {
		t.Fatalf("%d documents", len(docs))
	}
	var class runtimeClass
	var policy networkPolicy
	var j job
	strictly(t, docs[0], &class)
	strictly(t, docs[1], &policy)
	strictly(t, docs[2], &j)
	kinds := []string{class.APIVersion + " " + class.Kind, policy.APIVersion + " " + policy.Kind, j.APIVersion + " " + j.Kind}
	if diff := cmp.Diff([]string{"node.k8s.io/v1 RuntimeClass", "networking.k8s.io/v1 NetworkPolicy", "batch/v1 Job"}, kinds); diff != "" {
		t.Error(diff)
	}
	p := j.Spec.Template.Spec
	if len(p.Containers) != 1 || j.Spec.BackoffLimit == nil || p.AutomountServiceAccountToken == nil || p.EnableServiceLinks == nil || p.Containers[0].SecurityContext.AllowPrivilegeEscalation == nil {
		t.Fatal("a field is missing whose default is not safe")
	}
	c := p.Containers[0]
	for what, ok := range map[string]bool{
		"no traffic":                    len(policy.Spec.PodSelector) == 0 && slices.Equal(policy.Spec.PolicyTypes, []string{"Ingress", "Egress"}) && policy.Metadata.Namespace == j.Metadata.Namespace,
		"a kernel of its own":           p.RuntimeClassName == class.Metadata.Name && class.Handler != "",
		"never run twice":               *j.Spec.BackoffLimit == 0 && p.RestartPolicy == "Never" && j.Spec.Completions == 1 && j.Spec.Parallelism == 1,
		"ends":                          j.Spec.ActiveDeadlineSeconds > 0 && p.TerminationGracePeriodSeconds > 0 && j.Spec.TTLSecondsAfterFinished > 0,
		"no token, no names of others":  !*p.AutomountServiceAccountToken && !*p.EnableServiceLinks,
		"nothing of the host":           !p.HostNetwork && !p.HostPID && !p.HostIPC,
		"another user than root":        p.SecurityContext.RunAsNonRoot && p.SecurityContext.RunAsUser > 0 && p.SecurityContext.RunAsGroup > 0,
		"no privileges":                 !*c.SecurityContext.AllowPrivilegeEscalation && !c.SecurityContext.Privileged && slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"}),
		"a filter of system calls":      p.SecurityContext.SeccompProfile.Type == "RuntimeDefault",
		"only its folders are writable": c.SecurityContext.ReadOnlyRootFilesystem,
		"limits":                        c.Resources.Limits["memory"] != "" && c.Resources.Limits["cpu"] != "" && c.Resources.Limits["ephemeral-storage"] != "",
		"no shell":                      len(c.Command) > 0 && !slices.Contains(c.Command, "sh") && !slices.Contains(c.Command, "-c"),
	} {
		if !ok {
			t.Errorf("the manifest does not grant: %s", what)
		}
	}
	mounted := map[string]string{}
	for _, m := range c.VolumeMounts {
		mounted[m.Name] = m.MountPath
	}
	for _, v := range p.Volumes {
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == "" || mounted[v.Name] == "" {
			t.Errorf("the volume %s has no limit, or is not mounted", v.Name)
		}
	}
	if diff := cmp.Diff(map[string]string{"workspace": "/workspace", "temp": "/tmp"}, mounted); diff != "" {
		t.Error(diff)
	}
}

func TestManifestIsReadStrictly(t *testing.T) {
	text := bytes.Replace(documents(t)[2], []byte("runAsNonRoot"), []byte("runAsNonroot"), 1)
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(new(job)); err == nil {
		t.Error("a misspelt field was read over")
	}
}

// The types above are ours. Those of kubectl are Kubernetes' own: it reads a job without a cluster and writes what it knows of it, so a
// field that is misspelt, or in the wrong place, is missing there.
func TestKubernetesKnowsEachField(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("left out: kubectl is not installed")
	}
	ours := documents(t)[2]
	if lost := lostIn(t, kubectl, ours); len(lost) > 0 {
		t.Errorf("Kubernetes does not know, or changes, %q", lost)
	}
	wrong := bytes.Replace(ours, []byte("automountServiceAccountToken"), []byte("automountServiceAccountTokens"), 1)
	if lost := lostIn(t, kubectl, wrong); !slices.Equal(lost, []string{".spec.template.spec.automountServiceAccountTokens"}) {
		t.Errorf("of a misspelt field: %q", lost)
	}
}

// lostIn names the fields of a job that kubectl does not write as they are.
func lostIn(t *testing.T, kubectl string, text []byte) (lost []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), kubectl, "set", "env", "--local", "-f", "-", "-o", "json", "LONGSHORE_TEST=1")
	cmd.Stdin, cmd.Env = bytes.NewReader(text), []string{"HOME=" + t.TempDir(), "KUBECONFIG=/dev/null"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl: %v", err)
	}
	var theirs, ours any
	if err := errors.Join(json.Unmarshal(out, &theirs), yaml.Unmarshal(text, &ours)); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(ours)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &ours); err != nil { // with the types of JSON
		t.Fatal(err)
	}
	var compare func(at string, ours, theirs any)
	compare = func(at string, ours, theirs any) {
		switch o := ours.(type) {
		case map[string]any:
			known, _ := theirs.(map[string]any)
			for name, value := range o {
				compare(at+"."+name, value, known[name])
			}
		case []any:
			known, _ := theirs.([]any)
			for i, value := range o {
				if i >= len(known) {
					lost = append(lost, fmt.Sprintf("%s[%d]", at, i))
					continue
				}
				compare(fmt.Sprintf("%s[%d]", at, i), value, known[i])
			}
		default:
			if !cmp.Equal(ours, theirs) && (!strings.HasPrefix(at, ".spec.template.spec.host") || ours != false || theirs != nil) { // hostPID: false is not written
				lost = append(lost, at)
			}
		}
	}
	compare("", ours, theirs)
	slices.Sort(lost)
	return lost
}
