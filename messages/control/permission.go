package control

// Permission is what a request needs. The zero value is one that no role has.
type Permission string

// Permissions within the tenant of the caller.
const (
	Read    Permission = "read"    // tasks, events, results, batches, sessions, workspaces, long-term memory; the definitions of agents and prompts
	Submit  Permission = "submit"  // submit, fork and cancel tasks and batches; forget sessions and workspaces; write and remove items of long-term memory
	Decide  Permission = "decide"  // approve, deny, answer
	Operate Permission = "operate" // dead letters and schedules of the tenant

	ManageKeys Permission = "manage-keys" // make, list and revoke API keys of the tenant
	ManageData Permission = "manage-data" // find and erase all that is kept of the tenant, of a conversation or of a person
)

// Permissions over what all tenants share. Only callers of all tenants have them.
const (
	ReadFleet    Permission = "read-fleet"    // metrics, workers, quotas
	OperateFleet Permission = "operate-fleet" // pause tenants, agents and providers; drain workers
	Author       Permission = "author"        // prompts, and the texts of agents
	Grant        Permission = "grant"         // what agents may do: their tools, grants, policies, models, hooks and limits
	Administer   Permission = "administer"    // the removal of agents and prompts, quotas
)

// Permissions are all of them.
func Permissions() []Permission {
	return []Permission{Read, Submit, Decide, Operate, ManageKeys, ManageData, ReadFleet, OperateFleet, Author, Grant, Administer}
}

// FleetWide reports whether it is about what all tenants share.
func (p Permission) FleetWide() bool {
	switch p {
	case ReadFleet, OperateFleet, Author, Grant, Administer:
		return true
	default:
		return false
	}
}

// Roles are those that have the permission.
func (p Permission) Roles() []AccessRole {
	switch p {
	case Read, ReadFleet:
		return AccessRoles()
	case Submit:
		return []AccessRole{RoleSubmitter, RoleOperator, RoleAdmin}
	case Decide:
		return []AccessRole{RoleApprover, RoleAdmin}
	case Operate, OperateFleet:
		return []AccessRole{RoleOperator, RoleAdmin}
	case Author:
		return []AccessRole{RoleAuthor, RoleGranter, RoleAdmin}
	case Grant:
		return []AccessRole{RoleGranter, RoleAdmin}
	case Administer, ManageKeys, ManageData:
		return []AccessRole{RoleAdmin}
	default:
		return nil
	}
}
