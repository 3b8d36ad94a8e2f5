// Package stage is what runs are measured on: the servers, a worker, a dispatcher, each in a process of its own, the workload that they
// work, and the floor, which writes the same without Longshore. Open starts a stage with the dispatcher in this process, OpenHall one
// whose dispatcher is a process too. Players are the roles that a child plays.
package stage
