// Package scrub reads every object that the catalog names again, in rounds, and says
// what is missing or damaged before a reader needs it.
//
//	round    every live object once a period, in the order of keys, evenly paced
//	suspect  what an ordinary read stumbled over is read in whole, at once
//	later    what the store gave no answer about is tried again
//	damaged  what is known to be damaged is looked at from time to time: it may be put back
//	repair   segments in damaged objects are written again from their hot copies
//
// An object is there, has the size that the catalog knows, describes itself as the
// catalog has it, and every frame passes its checks; or it is a snapshot with the right
// checksum. Anything else counts as damage only if it is so at each of three readings,
// and the catalog still names the object then. That the store gives no answer is never
// damage.
//
// Nothing is removed and no object is overwritten. What is lost stays named: reads of it
// fail until somebody puts the object back. A segment that is written again comes into
// the place of the damaged one by a commit that compares; its old object goes the way of
// all objects that nothing names any more.
//
// How far a round is, and what is damaged, is in the catalog, so that neither a restart
// begins anew nor is anything logged as news twice. One object is read at a time, by the
// same store that readers use: its breaker and its limits hold. The cache of frames is
// left alone.
package scrub
