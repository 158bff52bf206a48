// Package rdb writes and reads snapshots, files in Redis's RDB format:
//
//	w := rdb.NewWriter(file, nowNS, keys, "1")
//	w.Add(key, state)                           // in memory; w.Full says when to call w.Flush
//	err := w.Finish(nowNS)
//
//	savedNS, err := rdb.Read(source.New(file, size, nil), sink)
//
// An RDB file is REDIS, a version of four digits, opcodes with their values, and a checksum. Redis's rdb.h describes the
// format. The Writer writes the part that strings and hashes need. Read skips what is no limit.
//
// A limit of CL.THROTTLE is a string key that holds the TAT in Unix nanoseconds as decimal, and expires at a time in Unix
// milliseconds. A key of CL.TAKE is a hash with one field for each limit, whose value is the limit's state as text. Policies and
// rules are auxiliary fields. Package aof has the same forms in commands.
//
// The package knows neither when files are written nor where.
package rdb
