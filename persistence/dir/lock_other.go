//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package dir

import "os"

func (System) Lock(name string) (File, error) {
	f, err := open(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	return f, ErrNoLocks
}
