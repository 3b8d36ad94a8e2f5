package settings

import "strings"

// shownVariable names in an error the variable that a field of a file names, unless the name may be a secret that was written in
// its place. Capitals, with digits only beside an underscore, are sure to be a name.
func shownVariable(name, field string) string {
	digits := strings.ContainsAny(name, "0123456789") && !strings.Contains(name, "_")
	if digits || strings.ContainsFunc(name, func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
		return "the variable that " + field + " names"
	}
	return "the variable " + name
}
