//go:build !unix

package resp

func cpuTime() (userNS, systemNS int64, ok bool) { return 0, 0, false }
