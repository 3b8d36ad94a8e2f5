// Package sandbox confines what tools do.
//
// [Open] gives a [Workspace]: a run's folder, and the only way for a tool to touch files. [Workspaces] keeps one
// folder for each run; [InPlace] lets every run work in one given folder.
//
// Nothing outside the folder can be named, read, written or listed through a Workspace: not by ".." or an absolute
// path, not through symbolic or hard links, devices, pipes, sockets or mounts inside it, and not by swapping a folder
// for a link in the middle of a call. It does not stop another process of the same user, which needs no Workspace;
// nor does it keep one user of the same folder from another.
package sandbox
