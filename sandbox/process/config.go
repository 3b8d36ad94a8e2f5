package process

import (
	"os"
	"runtime"
)

// Config is what a runner needs. The zero value works.
type Config struct {
	Path     string   // Folders in which names of programs are looked up, separated by colons. Default /usr/local/bin:/usr/bin:/bin.
	ReadOnly []string // Files and folders of the host that every program may read and execute. Nil: [SystemFolders].
	Temp     string   // Where temporary folders are made if programs have no namespaces. Default os.TempDir().
	Cgroup   string   // A folder of cgroup v2 that the worker may make groups in. Default: the parent of its own, if it may.

	NoNamespaces bool   // Do not use namespaces, even where they work.
	Require      Layers // New fails without these. Landlock, seccomp and limits are always required.
	Limits       Limits // Of commands that state none. Zero fields: the defaults.
	Parallel     int    // Programs at once; others wait. Default: the number of CPUs.
}

// always are the layers without which nothing runs.
const always = LayerLandlock | LayerSeccomp | LayerLimits

func (c Config) withDefaults() Config {
	if c.Path == "" {
		c.Path = "/usr/local/bin:/usr/bin:/bin"
	}
	if c.ReadOnly == nil {
		c.ReadOnly = SystemFolders()
	}
	if c.Temp == "" {
		c.Temp = os.TempDir()
	}
	if c.Parallel <= 0 {
		c.Parallel = runtime.NumCPU()
	}
	c.Require |= always
	c.Limits = c.Limits.withDefaults()
	return c
}

// SystemFolders are the host's programs and libraries, and what these need of /etc: no passwords, keys or settings. Those that
// are missing are left out.
func SystemFolders() []string {
	var out []string
	for _, path := range []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
		"/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/ssl/certs", "/etc/ca-certificates",
	} {
		if _, err := os.Stat(path); err == nil {
			out = append(out, path)
		}
	}
	return out
}
