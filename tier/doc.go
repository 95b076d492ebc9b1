// Package tier joins the two tiers of firn to one store, the only one that the
// HTTP surface talks to.
//
// It resolves names to incarnations and positions to extents: each extent lies in
// one stream's own bytes (a fork's or its source's) and in one tier. A page is made
// of extents, up to its size, across the edges of segments, forks and tiers. It has
// no policy: when bytes are sealed and given up is decided in package compactor.
package tier
