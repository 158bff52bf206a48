// Package failure decides on calls while the engine does not answer. It knows no connections.
//
//	modes, err := failure.Parse("local,@login=deny")
//	d := failure.New(failure.Options{Modes: modes, Policies: keys.Set, …})
//	d.Take(&request, why, access)
//
// A call is answered with an error, or allowed, or denied, or decided by a table of this process with a share of its limit. Each policy may
// have a mode of its own.
package failure
