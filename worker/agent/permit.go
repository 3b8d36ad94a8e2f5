package agent

// AcquirePermits asks for the run's permits of semaphores, in their order, before it works.
type AcquirePermits struct{ Semaphores []string }

func (*AcquirePermits) action() {}
