// Package aof writes and reads append-only files, which hold the commands that make the limits what they are:
//
//	b = aof.AppendChange(b, change)
//	b = aof.AppendStamp(b, nowNS, source.Checksum(crc, b))
//
//	crc, savedNS, err := aof.Read(source.New(file, size, nil), func(args [][]byte) error { … })
//
// The commands hold states, not calls, so they mean the same whenever they are read. Redis can read them. A limit of CL.THROTTLE is
// a SET, a key of CL.TAKE an HSET, a policy or a rule an ECHO, which Redis ignores. Package rdb describes the values. What changes
// together is a unit between Multi and Exec, in one piece or several. Behind each piece stands a stamp: the time, and a checksum of it.
//
// The package knows neither when files are written nor where.
package aof
