package messages

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
)

// A line has a number of places. The runs that have one may work; the others wait, first come, first served.

// MaxPlaces is the largest cap on runs that work at once: more places than that are not counted.
const MaxPlaces = 10_000

const (
	keyLine    = "key."
	pausedLine = "paused."
)

// Concurrency lets few of the tasks with the same key work at once.
type Concurrency struct {
	Key   string `json:"key" pattern:"^[A-Za-z0-9_-]{1,64}$"`         // of the tenant
	Limit int    `json:"limit,omitempty" minimum:"1" maximum:"10000"` // how many may work at once; default 1. The newest task's holds for all of its key
}

func (c *Concurrency) check() error {
	if err := strict.CheckToken("concurrency.key", c.Key); err != nil {
		return err
	}
	if c.Limit < 0 || c.Limit > MaxPlaces {
		return &FieldError{Field: "concurrency.limit", Reason: fmt.Sprintf("must be 1 to %d", MaxPlaces)}
	}
	return nil
}

// PeopleLine is where runs stand that wait until a person decides or answers. It has no places: it says who waits.
const PeopleLine = "people"

// TenantLine is the line of a tenant's cap.
func TenantLine(tenant string) string { return string(QuotaTenant) + "." + tenant }

// AgentLine is the line of an agent's cap, for all tenants together.
func AgentLine(agent string) string { return string(QuotaAgent) + "." + agent }

// KeyLine is the line of a concurrency key of a tenant.
func KeyLine(tenant, key string) string { return keyLine + tenant + "." + key }

// PausedLine is where runs wait for the end of a pause. It has no places while the pause goes on.
func PausedLine(of QuotaRef) string { return pausedLine + string(of.Kind) + "." + of.Name }

// IsKeyLine reports whether a line is one of a concurrency key, whose cap the line itself holds.
func IsKeyLine(line string) bool { return strings.HasPrefix(line, keyLine) }

// IsPausedLine reports whether a line is one of a pause.
func IsPausedLine(line string) bool { return strings.HasPrefix(line, pausedLine) }

// QuotaOfLine is the quota that says how many places a line has; ok is false for one of a key.
func QuotaOfLine(line string) (of QuotaRef, ok bool) {
	kind, name, _ := strings.Cut(strings.TrimPrefix(line, pausedLine), ".")
	of = QuotaRef{QuotaKind(kind), name}
	return of, of.Check() == nil
}

// CheckLine reports whether it is the name of a line.
func CheckLine(line string) error {
	if line == PeopleLine || line == WorkerLine {
		return nil
	}
	parts := strings.Split(line, ".")
	ok := !slices.ContainsFunc(parts, func(p string) bool { return !strict.ValidToken(p) })
	if _, quota := QuotaOfLine(line); ok && (quota || IsKeyLine(line) && len(parts) == 3) {
		return nil
	}
	return &FieldError{Field: "line", Reason: "must be tenant.T, agent.A, key.T.K, paused.KIND.NAME, people or worker"}
}

// Line is who has the places of a line.
type Line struct {
	Limit  int       `json:"limit,omitempty"` // of a line of a key
	Places []Place   `json:"places,omitempty"`
	Time   time.Time `json:"time,omitzero"` // of the last change
}

// Place is that of a run.
type Place struct {
	Run   string `json:"run"`             // "tenant.run"
	Claim uint64 `json:"claim,omitempty"` // sequence of the claim that uses it; 0: the run was given it and has not come yet
}

// PlaceOf names a run in a line.
func PlaceOf(run Ref) string { return run.Tenant + "." + run.Run }

// Ref is the run that has the place.
func (p *Place) Ref() Ref {
	tenant, run, _ := strings.Cut(p.Run, ".")
	return Ref{Tenant: tenant, Run: run}
}

// Of is where in Places a run is; -1: nowhere.
func (l *Line) Of(run Ref) int {
	name := PlaceOf(run)
	return slices.IndexFunc(l.Places, func(p Place) bool { return p.Run == name })
}
