package store

// Stats are counts since New, and gauges.
type Stats struct {
	Expired    int64 // keys removed because they were dead
	Evicted    int64 // live limits removed to make room
	Hits       int64 // keys that Get, Throttle, Take, Give and Limits found
	Misses     int64 // and did not find
	Changes    int64 // puts, calls that took, removals, and changes of settings
	Bytes      int64 // held, by the estimate of MaxBytes; a gauge, as are those below
	WithExpiry int64 // keys held whose ExpiryNS is not NoExpiry
	AvgTTLNS   int64 // of a sample of those, how long they have to live; 0 if there are none
	Probation  int64 // keys held that were seen once, or fell back: the first to be evicted
	Protected  int64 // keys held that were used again. Spent keys are in neither
}
