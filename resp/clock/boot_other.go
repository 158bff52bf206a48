//go:build !linux

package clock

func bootNS() (int64, bool) { return 0, false }
