package render

import (
	"net/url"

	"github.com/longshore-run/longshore/messages"
)

// RunLink is the address of a run in the console at an address; empty if that is.
func RunLink(console string, run messages.Ref) string {
	if console == "" {
		return ""
	}
	link := console + "/runs/" + url.PathEscape(run.Run)
	if run.Tenant != "" && run.Tenant != messages.DefaultTenant {
		link += "?tenant=" + url.QueryEscape(run.Tenant)
	}
	return link
}

// SeeIt is a line that says where a run is in the console; empty if its address is not known.
func SeeIt(console string, run messages.Ref) string {
	link := RunLink(console, run)
	if link == "" {
		return ""
	}
	return "see it at " + link + "\n"
}
