//go:build !linux

package resp

func bootNS() (int64, bool) { return 0, false }
