//go:build !unix

package metrics

import "time"

func cpuTime() (user, system time.Duration, ok bool) { return 0, 0, false }
