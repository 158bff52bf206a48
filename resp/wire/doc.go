// Package wire is the codec of Redis's protocol, RESP2 and RESP3: bytes to words, words to bytes. Only
// ReadReply does I/O. The package knows no command, session or file.
//
//	var frames wire.FrameReader
//	args, n, err := frames.Next(arrived, nil, wire.Limits{MaxArgs: 1 << 20, MaxBulk: 512 << 20, Authed: true})
//	out = wire.AppendBulk(out, args[1]) // a reply
//
//	request := wire.AppendCommand(nil, "CL.THROTTLE", "key", "15", "30", "60")
//	reply, err := wire.ReadReply(bufio.NewReader(conn))
//
// # What there is
//
//	                                                                                 used by
//	requests   FrameReader    from a socket: arrays, or lines typed by hand           sessions
//	           ReadLength     one length, as clients write it                         the short ways of CL.THROTTLE and CL.TAKE
//	           ParseCommand   from a file: strictly, and what is wrong                the append-only file
//	           AppendCommand  an array of bulk strings (AppendBulks: a part of one)   the append-only file, health check, bench
//	replies    Append…        one function for each type                              sessions, scripts
//	           ReadReply      from a connection                                       health check, bench
//	           ParseReply     from memory                                             scripts
//
// Sockets and files have different rules, as they have in Redis. A command may arrive from a socket in any pieces. Its lengths
// must be canonical ($4, not $04), and the two bytes behind an argument are not looked at. In a file, lengths may have leading
// zeros. Every other byte must be right: a wrong one is damage.
//
// # Bounds
//
// Every length is checked before memory is allocated for it. A FrameReader holds nothing for the arguments of an unfinished
// command, and copies no argument of an array. Its time is linear in the bytes that arrive, in whatever pieces.
// ReadReply accepts lines up to the size of its reader's buffer, and strings up to 512 MB, which it allocates as they arrive.
//
// # What redcon does here, and what it does not
//
// github.com/tidwall/redcon writes the types of RESP2. It has none of RESP3, so those are written here. Its readers are not
// used. In 1.6.2, `*1\r\n$-2\r\n` makes ReadNextCommand panic (slice bounds out of range), `*1\r\n$9223372036854775807\r\n` its
// server (index out of range), and `$9223372036854775807\r\n` ReadNextRESP. Each of these ends the process. The readers also
// start from the beginning for each piece that arrives, and split lines typed by hand by other rules than Redis (see
// splitInline).
//
// Sources: https://redis.io/docs/latest/develop/reference/protocol-spec/ and Redis 7.2's networking.c, sds.c and aof.c.
package wire
