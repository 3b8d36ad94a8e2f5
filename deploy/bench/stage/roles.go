package stage

import (
	"github.com/longshore-run/longshore/deploy/bench/measure"
)

// Roles that this binary plays as a child of the driver.
const (
	RoleServers    = "servers"
	RoleWorker     = "worker"
	RoleFloor      = "floor"
	RoleDispatcher = "dispatcher" // with its HTTP API, as an operator runs it
	RoleAudit      = "audit"
	RoleDoctor     = "doctor" // `longshore doctor runs`
	RoleDev        = "dev"    // a whole fleet in one process, as `longshore dev` is
)

// Players are the roles.
func (e Env) Players() map[string]measure.Player {
	return map[string]measure.Player{
		RoleServers: &serversRole{env: e}, RoleWorker: &workerRole{env: e}, RoleFloor: &floorRole{},
		RoleDispatcher: &dispatcherRole{env: e}, RoleDev: &devRole{env: e}, RoleAudit: &auditRole{env: e}, RoleDoctor: &doctorRole{env: e},
	}
}
