package remote

import (
	"errors"
	"strings"

	"celld/store"
)

// connect connects, and goes on to do so in the background until it succeeds.
func (s *Store) connect() error { return errors.New("to be written") }

// classify turns an error of rueidis into a *DownError, or returns an error of the engine's that callers are to be told, such as
// WRONGTYPE or OOM.
func classify(err error) error {
	switch {
	case strings.Contains(err.Error(), "WRONGTYPE"):
		return store.ErrWrongType
	case strings.HasPrefix(err.Error(), "OOM"):
		return store.ErrFull
	}
	return err
}

func isNoScript(err error) bool { return strings.HasPrefix(err.Error(), "NOSCRIPT") }

func isSyntaxError(err error) bool { return err != nil && err.Error() == "ERR syntax error" }
