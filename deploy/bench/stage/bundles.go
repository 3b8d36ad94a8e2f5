package stage

import (
	"fmt"
	"os"
)

// BundlesVariable says that the processes of a measurement bundle events: the setting of a worker.
const BundlesVariable = "LONGSHORE_EVENT_BUNDLES"

// Bundle has the workers of this measurement publish events that come together as one message.
func Bundle() error {
	if err := os.Setenv(BundlesVariable, "true"); err != nil {
		return fmt.Errorf("pass the setting on: %w", err)
	}
	return nil
}

func (e Env) bundles() bool { return e.Get(BundlesVariable) == "true" }
