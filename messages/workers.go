package messages

import "time"

// Requests about the workers of the fleet.
const (
	SubjectWorkers     = "longshore.workers"       // {} -> WorkerList
	SubjectWorkerDrain = "longshore.workers.drain" // WorkerDrain -> WorkerStatus; not_found, or conflict when several have the name
)

// Subjects on which workers answer. Each worker answers the first, and the second with its own id.
const (
	StatusOfWorkers = "workers.status"
	DrainPrefix     = "workers.drain."
	KeepPrefix      = "workers.keep." // and the id: whether it works a run. From workers alone
)

// WorkerStatus is what a worker says of itself.
type WorkerStatus struct {
	Name     string    `json:"name"`
	ID       string    `json:"id"` // of this life of the worker; no two have the same
	Host     string    `json:"host,omitempty"`
	Version  string    `json:"version,omitempty"`
	Slots    int       `json:"slots"` // runs worked at once
	Busy     int       `json:"busy"`  // slots in use
	Held     int       `json:"held"`  // task messages in hand
	Since    time.Time `json:"since"`
	Draining bool      `json:"draining,omitempty"` // it takes nothing new, and ends when its runs have handed themselves back
	// Begun is how many tasks of each tenant are in hand. They are in the queue's stream until they are done, and
	// wait for nobody.
	Begun map[string]int `json:"begun,omitempty"`
}

// WorkerList is the workers that answered, by name.
type WorkerList struct {
	Workers []WorkerStatus `json:"workers"`
}

// WorkerDrain asks one worker to take nothing new, hand its runs back and end.
type WorkerDrain struct {
	Worker string `json:"worker"` // its id, or its name when no other has it
}

// Check returns a *FieldError when the worker cannot be one.
func (r WorkerDrain) Check() error {
	if r.Worker == "" {
		return &FieldError{"worker", "is missing"}
	}
	return checkText("worker", r.Worker, maxSaid)
}
