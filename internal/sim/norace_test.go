//go:build !race

package sim_test

const raced = false
