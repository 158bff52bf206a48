package remote

import "errors"

// connect connects, and goes on to do so in the background until it succeeds.
func (s *Store) connect() error { return errors.New("to be written") }

// classify turns an error of rueidis into a *DownError, or returns an error of the engine's that callers are to be told, such as
// WRONGTYPE or OOM.
func classify(err error) error { return err }

func isNoScript(err error) bool { return false }
