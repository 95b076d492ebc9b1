//go:build race

package sim_test

// raced: the race detector makes runs about ten times as long.
const raced = true
