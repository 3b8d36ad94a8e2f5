// Package postgrestest starts a PostgreSQL server of the machine for the tests of a package. Where none is installed the tests say so
// and leave out what needs one.
package postgrestest
