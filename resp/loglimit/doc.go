// Package loglimit bounds the lines of a log that peers can cause, so that nobody can fill the disk.
//
//	log := loglimit.New(slog.Default(), clock)
//	log.WarnSeldom("a client does not read", "client", addr) // one line of this text a second
//	log.Flush()                                             // each second: the last of the lines beyond, and how many were left out
//
// golang.org/x/time/rate says which line is one too many; it does not keep the last one, which tells that the trouble goes on and how
// often it came.
package loglimit
