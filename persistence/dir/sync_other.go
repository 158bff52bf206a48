//go:build !linux

package dir

import "os"

func dataSync(f *os.File) error { return f.Sync() }

func dropCache(*os.File, int64, int64) {}
