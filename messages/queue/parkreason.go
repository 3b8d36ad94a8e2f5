package queue

// Reasons for which a run is parked, as records, events, metrics and people name them. ParkReasons explains each.
const (
	ParkNotBefore = "notBefore" // until the time before which its task may not begin
	ParkWorker    = "worker"    // until a worker is free that has what the run needs
	ParkQuota     = "quota"     // until a quota of the run's tenant lets it continue; Parked.Limit says which
	ParkSemaphore = "line"      // until a permit is free under a cap
	ParkPaused    = "paused"    // until something that was paused is resumed
	ParkModel     = "model"     // until the model may be called again
	ParkRate      = "rate"      // until the rates of a tool let the run call it; Parked.Limit is the rule
	ParkApproval  = "approval"  // until a person has decided about a call: see Approval
	ParkAnswer    = "answer"    // until a person has answered the question of a call
	ParkSession   = "session"   // until the earlier runs of its session have ended
	ParkChildren  = "children"  // until enough of the runs that it delegated to have ended
	ReasonBudget  = "budget"    // until a person has said whether the run may go beyond its budget; it is of no call
)

// ParkReason explains one reason for which runs are parked.
type ParkReason struct {
	Reason string // one of the constants
	Gate   string // of worker/limits, which parks runs for it
	Text   string // for people: a sentence about the run, without its full stop, to which details may be added
	Person bool   // only a person ends it before its time is over
}

// ParkReasons are all the reasons for which this version parks runs, in the order in which workers look for them. Tools of
// an embedding program may name others. What explains waits to people, and what counts them, reads this table.
func ParkReasons() []ParkReason {
	return []ParkReason{
		{ReasonBudget, "budget", "It waits for more budget", true},
		{ParkNotBefore, "not before", "It waits for the time at which its task may begin", false},
		{ParkWorker, "worker fit", "It waits for a worker that fits", false},
		{ParkQuota, "quota", "It waits for its quota", false},
		{ParkSemaphore, "semaphore", "It waits for a permit", false},
		{ParkPaused, "pause", "It waits for the end of a pause", false},
		{ParkModel, "provider limit", "It waits until its model may be called again", false},
		{ParkRate, "tool rate", "It waits until a tool may be called again", false},
		{ParkApproval, "approval", "It waits for an approval", true},
		{ParkAnswer, "approval", "It waits for its answer", true},
		{ParkChildren, "approval", "It waits for its children", false},
		{ParkSession, "session", "It waits for its turn", false},
	}
}

// ParkReasonOf explains a reason. For one that is not in the table, as a tool may name it, it makes a text of the name.
func ParkReasonOf(reason string) ParkReason {
	for _, r := range ParkReasons() {
		if r.Reason == reason {
			return r
		}
	}
	return ParkReason{Reason: reason, Text: "It waits for its " + reason}
}
