// Package conn has what all commands of the client share: how they connect, the flags --tenant and -o, the run that an id, the
// beginning of one or --last names, and the options by which they show text. A command embeds a [Caller]; one that stands
// elsewhere, because of what it links, calls [OneRun].
package conn
