package compactor

import "errors"

// ErrSealingOff: the server runs without cold storage.
var ErrSealingOff = errors.New("there is no cold storage to seal to")
