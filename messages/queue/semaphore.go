package queue

import (
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// A semaphore has a number of permits. Runs that hold one may work; the others wait, first come, first served. Subjects, records
// and JSON fields call a semaphore a line and a permit a place.

const (
	keyPrefix       = "key."
	pausePrefix     = "paused."
	workspacePrefix = "workspace."
)

// PeopleList lists the runs that wait for a person to decide or answer. It is a semaphore without permits.
const PeopleList = "people"

// WorkerList is where runs stand that wait for a worker that fits them. Like PeopleList it has no places.
const WorkerList = "worker"

// TenantSemaphore is the semaphore of a tenant's cap.
func TenantSemaphore(tenant string) string { return string(QuotaTenant) + "." + tenant }

// AgentSemaphore is the semaphore of an agent's cap, for all tenants together.
func AgentSemaphore(agent string) string { return string(QuotaAgent) + "." + agent }

// KeySemaphore is the semaphore of a concurrency key of a tenant.
func KeySemaphore(tenant, key string) string { return keyPrefix + tenant + "." + key }

// PauseSemaphore is the semaphore on which runs wait for a pause to end. It has no permits while the pause lasts.
func PauseSemaphore(of QuotaRef) string { return pausePrefix + string(of.Kind) + "." + of.Name }

// IsKeySemaphore reports whether a semaphore belongs to a concurrency key. Its limit is stored in the semaphore itself.
func IsKeySemaphore(name string) bool { return strings.HasPrefix(name, keyPrefix) }

// WorkspaceSemaphore is the semaphore of a named workspace of a tenant. It has one permit.
func WorkspaceSemaphore(tenant, name string) string { return workspacePrefix + tenant + "." + name }

// WorkspaceOfSemaphore returns the name of the workspace that a semaphore belongs to; ok is false if it belongs to none.
func WorkspaceOfSemaphore(name string) (workspace string, ok bool) {
	rest, ok := strings.CutPrefix(name, workspacePrefix)
	_, workspace, found := strings.Cut(rest, ".")
	return workspace, ok && found
}

// IsPauseSemaphore reports whether a semaphore belongs to a pause.
func IsPauseSemaphore(name string) bool { return strings.HasPrefix(name, pausePrefix) }

// QuotaOfSemaphore returns the quota that sets the number of permits; ok is false for the semaphore of a concurrency key.
func QuotaOfSemaphore(name string) (of QuotaRef, ok bool) {
	kind, target, _ := strings.Cut(strings.TrimPrefix(name, pausePrefix), ".")
	of = QuotaRef{QuotaKind(kind), target}
	return of, of.Check() == nil
}

// CheckSemaphore returns an error unless name is the name of a semaphore.
func CheckSemaphore(name string) error {
	if name == PeopleList || name == WorkerList {
		return nil
	}
	parts := strings.Split(name, ".")
	ok := !slices.ContainsFunc(parts, func(p string) bool { return !strict.ValidToken(p) })
	_, workspace := WorkspaceOfSemaphore(name)
	if _, quota := QuotaOfSemaphore(name); ok && (quota || (IsKeySemaphore(name) || workspace) && len(parts) == 3) {
		return nil
	}
	return &messages.FieldError{Field: "line", Reason: "must be tenant.T, agent.A, key.T.K, workspace.T.W, paused.KIND.NAME, people or worker"}
}

// Semaphore is the stored state of a semaphore: its permits that are taken.
type Semaphore struct {
	Limit   int       `json:"limit,omitempty"` // of a concurrency key; others take theirs from a quota
	Permits []Permit  `json:"places,omitempty"`
	Time    time.Time `json:"time,omitzero"`  // of the last change
	Turn    uint64    `json:"turn,omitempty"` // of a workspace: the number of the last permit that was granted
}

// Permit is a permit held by a run.
type Permit struct {
	Run   string `json:"run"`             // "tenant.run"
	Claim uint64 `json:"claim,omitempty"` // sequence of the claim that uses it; 0: granted, and the run has not claimed yet
	Turn  uint64 `json:"turn,omitempty"`  // of a workspace: its number, which no later permit has
}

// HolderOf returns the name of a run as Permit.Run has it.
func HolderOf(run messages.Ref) string { return run.Tenant + "." + run.Run }

// Ref returns the run that holds the permit.
func (p *Permit) Ref() messages.Ref {
	tenant, run, _ := strings.Cut(p.Run, ".")
	return messages.Ref{Tenant: tenant, Run: run}
}

// Of returns the index of a run in Permits, or -1.
func (l *Semaphore) Of(run messages.Ref) int {
	holder := HolderOf(run)
	return slices.IndexFunc(l.Permits, func(p Permit) bool { return p.Run == holder })
}
