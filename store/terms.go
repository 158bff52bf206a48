package store

// WaitMode says what a Take does that is denied now and would pass later.
type WaitMode uint8

const (
	DontWait WaitMode = iota // it is denied
	Reserve                  // it books ahead, and the answer says how long to wait
	Wait                     // it waits: the answer comes when the time has come
)

// Terms say how a Take waits, and how long its lease lasts.
type Terms struct {
	Mode    WaitMode
	MaxNS   int64  // the longest wait; 0 or less: none
	LeaseNS int64  // how long the lease lasts, unless it is settled before; 0: no lease. Not for conc
	Bound   bool   // the lease ends with the process that granted it
	Name    string // of the lease: a repeat under the same name takes nothing, and has the same answer; "": none

	WaitNS uint64 // out: how long until the call may go ahead
	PassNS int64  // out: when that is, in the time of the store; 0: it was not granted
	Lease  int64  // out: the lease's id; 0: none
}
