package agent

// JoinLines asks for the run's place in lines, in their order, before it works.
type JoinLines struct{ Lines []string }

func (*JoinLines) action() {}
