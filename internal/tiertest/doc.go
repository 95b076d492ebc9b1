// Package tiertest runs random commands against the hot tier on a file system that
// crashes, beside a model that is written from the rules and not from the code.
//
// A run is a sequence of steps, drawn from a seed as the run goes, so that each is
// chosen with the state in mind that those before it left. A step is a group of
// commands that are issued at once. It may crash: at a chosen operation of the file
// system a copy of the disk is taken, with part of what was not synced yet, and the
// run goes on from that copy.
//
// After each group there must be an order of its commands in which the model gives
// the same answers. A command that was not answered before the crash may have
// happened, once and whole, or not at all; nothing else may. After each crash and
// each restart the whole store is read directly (package verify), checked against
// itself and compared with the model field by field and byte by byte, and then read
// again through the views that clients get, cold bytes included.
//
// What concurrency makes of a group is not decided by the seed, so a failure may
// take a few repetitions to come back.
package tiertest
