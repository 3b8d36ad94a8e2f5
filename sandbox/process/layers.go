package process

import "strings"

// Layers is a set of what confines a program.
type Layers uint32

// The layers. What each stops is in docs/sandbox.md.
const (
	LayerLandlock   Layers = 1 << iota // Files, signals and sockets, by the Landlock of the kernel.
	LayerSeccomp                       // System calls that programs do not need, and those of other architectures.
	LayerLimits                        // Limits of memory, CPU time, open files and file size, for each process.
	LayerNamespaces                    // Own namespaces for users, mounts, processes, network, IPC, host name and cgroups.
	LayerProcesses                     // A limit on the number of processes.
	LayerCgroup                        // Limits of memory and processes for all processes of a program together.
)

// names in the order of the bits.
func names() []string {
	return []string{"landlock", "seccomp", "limits", "namespaces", "processes", "cgroup"}
}

// Has reports whether all of other are in l.
func (l Layers) Has(other Layers) bool { return l&other == other }

// String returns the names, separated by commas, or "none".
func (l Layers) String() string {
	var out []string
	for i, name := range names() {
		if l&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// ParseLayers reads names, such as of a setting. An unknown name is a *[CommandError].
func ParseLayers(list []string) (Layers, error) {
	var out Layers
	for _, want := range list {
		found := false
		for i, name := range names() {
			if name == want {
				out, found = out|1<<i, true
			}
		}
		if !found {
			return 0, &CommandError{Field: "require", Reason: "has no layer " + clip(want) + "; there are " + strings.Join(names(), ", ")}
		}
	}
	return out, nil
}
