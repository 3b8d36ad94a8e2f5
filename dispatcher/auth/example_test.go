package auth_test

import (
	"fmt"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages/control"
)

// A permission comes with a role. One over the whole fleet also needs a key that is not bound to a tenant.
func ExamplePrincipal_May() {
	ada := auth.Principal{Kind: auth.KindKey, ID: "k-1", Name: "ada", Tenant: "acme", Roles: []control.AccessRole{control.RoleApprover}}
	fmt.Println("approver decides:", ada.May(control.Decide), "submits:", ada.May(control.Submit))

	ada.Roles = []control.AccessRole{control.RoleAdmin}
	fmt.Println("admin of a tenant manages keys:", ada.May(control.ManageKeys), "puts agents:", ada.May(control.Administer))

	ada.Tenant = control.AllTenants
	fmt.Println("admin of all puts agents:", ada.May(control.Administer))
	// Output:
	// approver decides: true submits: false
	// admin of a tenant manages keys: true puts agents: false
	// admin of all puts agents: true
}
