// Package browser has the tests of the console in a real browser. They need Chromium and run where LONGSHORE_CHROMIUM names it, as in
// .ci/run; elsewhere they say that they are left out.
package browser
