// Package ptytest gives a test a terminal, for what programs show to people alone. Call [Open]; the test's end closes it.
// There are terminals of tests on Linux only.
package ptytest
