// Package hooks makes the HTTP hooks of agents. Make a [Client] with [New] from what the operator allows, and give
// [Client.Hook] to the runner.
//
// A hook is a POST of a messages.HookCall as JSON, to a host that the operator listed and to no other: redirects are
// not followed, no proxy is asked, and an address that is not of the open internet is refused when it is dialled,
// whatever name led to it, unless the operator listed that very address or allowed private ones. With a secret each
// request is signed. Any 2xx is a success; an answer is read at the points that decide, strictly, up to 64 KiB.
package hooks
