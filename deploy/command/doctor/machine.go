package doctor

import (
	"context"
	"os"
	"runtime"
	"strings"
	"time"
)

// machine looks at what this system brings along.
func (d *doctor) machine(context.Context) []Finding {
	out := []Finding{zones()}
	if d.env.role == roleWorker {
		out = append(out, sandboxes())
	}
	return out
}

// zones are needed by schedules. The program has data of its own for a system without.
func zones() Finding {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Asia/Tokyo"} {
		if _, err := time.LoadLocation(name); err != nil {
			return fail("time zones", "install tzdata, or set ZONEINFO", "%v", err)
		}
	}
	return ok("time zones", "known")
}

// sandboxes tells how this system could confine processes. The file tools need none of it.
func sandboxes() Finding {
	const check = "sandbox"
	if runtime.GOOS != "linux" {
		return ok(check, "file tools are confined to their folder; %s has no Linux sandboxes for processes", runtime.GOOS)
	}
	line := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	yes := func(is bool) string {
		if is {
			return "yes"
		}
		return "no"
	}
	most := line("/proc/sys/user/max_user_namespaces")
	namespaces := most != "" && most != "0" && line("/proc/sys/kernel/unprivileged_userns_clone") != "0" &&
		line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") != "1"
	seccomp := line("/proc/sys/kernel/seccomp/actions_avail") != ""
	landlock := "unknown" // without that file system, as in most containers; the check of programs proves it
	if modules := line("/sys/kernel/security/lsm"); modules != "" {
		landlock = yes(strings.Contains(modules, "landlock"))
	}
	return ok(check, "file tools are confined to their folder; for processes: user namespaces %s, seccomp %s, landlock %s",
		yes(namespaces), yes(seccomp), landlock)
}
