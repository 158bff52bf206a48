// Package keyspace scans, counts and removes all keys of the engine. It knows no limits.
//
//	k := keyspace.New(options)
//	k.Scan(ctx, store.ScanOptions{Pattern: "user:*", Count: 100}, func(next uint64, keys []string, err error) { … })
//
// It goes over all masters in steps, each of which needs admission: so a walk over all keys holds up neither the engine nor short
// questions.
package keyspace
