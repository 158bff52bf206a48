//go:build !linux

package transport

import "errors"

const pollHalf = 0 // there is no such event

// HasLoops says whether this system has event loops. Only Linux has.
const HasLoops = false

func newLoops(*Transport, int) (carrier, error) { return nil, errors.ErrUnsupported }
