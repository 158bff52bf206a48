// Package keyspace answers what is asked about all keys of the engine, on all masters, in steps: so those who ask for much hold up neither
// the engine nor those who ask for little.
//
//	k := keyspace.New(options)
//	k.Scan(ctx, keyspace.ScanOptions{Pattern: "user:*", Count: 100}, func(next uint64, keys []string, err error) { … })
package keyspace
