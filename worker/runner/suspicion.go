package runner

import (
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// Fleet is what is known of the other workers. Safe for concurrent use; no call blocks.
type Fleet interface {
	// Lost is how many workers were lost lately, less those whose losses are explained by runs that were convicted, and whether
	// there were such runs.
	Lost() (n int, convicted bool)
	// Trials is how many runs a worker had on trial when it was heard last; ok is false when that is not known.
	Trials(life string) (n int, ok bool)
	// Convict tells the fleet that a run was poison, and how many workers it cost.
	Convict(workers int)
}

// Trial is a run's stay in quarantine.
type Trial struct {
	Alone bool                // no other run is on trial in this worker
	End   func(progress bool) // may be called more than once
}

// losses are what a run's log says of the workers that it lost.
type losses struct { //nolint:recvcheck // count changes it, weigh is pure
	workers int  // owners lost since the last progress
	acting  bool // it was in a tool call
	alone   bool // it was alone on trial when it lost the last
}

// evidence is what the fleet says of them.
type evidence struct {
	lost      int  // workers lost lately, whatever they worked, that no convicted run explains
	convicted bool // a run was found to be poison lately
	trials    int  // of the last owner, when it was heard last
	known     bool // whether that is known
}

// verdict is how a run is taken up that lost its owner.
type verdict int

const (
	inTheOpen verdict = iota
	inQuarantine
	isPoison
)

// Bounds of suspicion.
const (
	// From so many lost workers on a run is suspect. One loss is no evidence: the run died with all the others of its worker.
	suspectFrom = 2
	// So many, the last of them alone in quarantine, are proof.
	provenBy = 3
	// A run that accounts for less than this share of the workers lost lately is more likely a victim.
	victimShare = 2
)

// weigh decides how a run is taken up again, after so many attempts without progress. Pure.
func (l losses) weigh(e evidence, attempts, maxAttempts int) verdict {
	storm := e.lost > victimShare*l.workers                             // most workers were lost to something else
	own := e.lost <= l.workers && (!e.convicted || e.lost == l.workers) // nothing else is known to cost workers
	switch {
	case attempts >= maxUnclaimed*maxAttempts, attempts >= maxAttempts && own:
		return isPoison
	case l.workers >= provenBy && l.alone && e.known && e.trials <= 1 && e.lost <= l.workers:
		return isPoison
	case l.workers < suspectFrom, storm, e.convicted && e.lost == 0:
		return inTheOpen
	default:
		return inQuarantine
	}
}

// count follows the losses from one head of the log to the next.
func (l *losses) count(prev, h *record.Head) {
	if h.Has(record.KindClaimed) && isOpen(prev) {
		l.workers++
	}
	switch {
	case h.Has(record.KindModelReplied), h.Has(record.KindModelFailed), h.Has(record.KindToolReturned),
		h.Has(record.KindSummarised), h.Has(record.KindParked) && h.Waits != queue.ParkWorker && h.Waits != queue.ParkRate:
		l.workers = 0
	}
	switch {
	case h.Has(record.KindToolStarted):
		l.acting = true
	case h.Has(record.KindStepStarted), h.Has(record.KindParked):
		l.acting = false
	}
}

// isOpen reports whether a run has an owner after this entry that neither ended nor parked it, nor handed it back.
func isOpen(h *record.Head) bool {
	return h.Phase == record.PhaseActive && !h.Has(record.KindReleased)
}

// weigh is what is to be done with a run whose newest entry is this.
func (x *claimer) weigh(last *record.Entry) (verdict, losses) {
	l := x.losses
	if isOpen(&last.Head) {
		l.workers++
		l.alone = last.Head.Alone
	}
	var e evidence
	if f := x.cfg.Fleet; f != nil {
		e.lost, e.convicted = f.Lost()
		e.trials, e.known = f.Trials(Claimant(last.Head.Claim))
	}
	return l.weigh(e, last.Head.Attempt, x.cfg.MaxAttempts), l
}
