// Package sim runs whole histories of a store from a seed: the real hot tier on a disk
// that crashes, the real cold tier over objects that fail, two compactors whose steps
// are taken one by one and out of turn, and beside them a model that is written from
// the rules and not from the code.
//
// A history is a script: a world, then one step a line. Steps are drawn as the run
// goes, with the state in mind that those before left. One goroutine takes them, with a
// clock that moves only between them, so a seed tells the same history every time, but
// for what Pebble does in the background.
//
// After each step some stream is read, in part, and compared with the model. After
// each crash and at the end everything is: what exists, every byte through the pages
// that clients get, snapshots, bootstraps, and the structure of catalog and objects
// (package verify). A step that was not answered before a crash has happened whole or
// not at all. Trouble of the object store may fail a read; it never makes it shorter or
// different. At the end the trouble is over: all bytes can be sealed, given up and
// still be read, and when the graces are over the bucket holds exactly the objects that
// the catalog names.
//
// A history that fails is made shorter, see [Shrink], and goes to testdata as a test.
package sim
