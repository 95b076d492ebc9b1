// Package trials holds what users of other servers have reported, as tests: each trial is
// a small story with one right outcome, and docs/testing.md lists which test shows which.
// Most run a whole server in the test's process: the hot tier in a directory, the cold
// one behind scripted faults, the compactor on demand, a real listener. Those about
// crashes run and kill the real binary.
//
// Figures are scaled down so that all of them take well under a minute; -full takes
// them as they were reported.
package trials
