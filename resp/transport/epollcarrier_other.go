//go:build !linux

package transport

import "errors"

// HasLoops says whether this system has event loops: on Linux.
const HasLoops = false

func newLoops(*Transport, int) (carrier, error) { return nil, errors.ErrUnsupported }
