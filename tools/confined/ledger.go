package confined

import (
	"sync"

	"github.com/longshore-run/longshore/sandbox/proxy"
)

// Host is what a program asked of one host.
type Host struct {
	Host     string `json:"host"` // with its port; empty: of requests that named none
	Requests int    `json:"requests"`
	Refused  int    `json:"refused,omitempty"`
	Failed   int    `json:"failed,omitempty"`
	Why      string `json:"why,omitempty"` // the first refusal
}

// maxHosts are named; further ones are counted together.
const maxHosts = 16

// ledger counts requests by host. Safe for concurrent use.
type ledger struct {
	mu    sync.Mutex
	hosts []Host // in the order in which they were first asked for
}

func (l *ledger) add(q proxy.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.of(q.Endpoint)
	h.Requests++
	if q.Failed {
		h.Failed++
	}
	if q.Refused != "" {
		h.Refused++
		if h.Why == "" {
			h.Why = q.Refused
		}
	}
}

func (l *ledger) of(endpoint string) *Host {
	if len(l.hosts) >= maxHosts {
		endpoint = "others"
	}
	for i := range l.hosts {
		if l.hosts[i].Host == endpoint {
			return &l.hosts[i]
		}
	}
	l.hosts = append(l.hosts, Host{Host: endpoint})
	return &l.hosts[len(l.hosts)-1]
}

func (l *ledger) all() []Host {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hosts
}
