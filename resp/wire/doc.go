// Package wire is the codec of Redis's protocol, RESP2 and RESP3: bytes to words, words to bytes. It does no I/O but
// ReadReply's, and knows no command, session or file.
//
//	var frames wire.FrameReader
//	args, n, err := frames.Next(arrived, nil, wire.Limits{MaxArgs: 1 << 20, MaxBulk: 512 << 20, Authed: true})
//	out = wire.AppendBulk(out, args[1])                          // a reply
//	out = wire.AppendCommand(out, "CL.THROTTLE", "key", "15", "30", "60") // a request
//	reply, err := wire.ReadReply(bufio.NewReader(conn))
//
// # What there is
//
//	requests   FrameReader    from a socket: in pieces, arrays or lines typed by hand    sessions
//	           ReadLength     one length as clients write it                             sessions' short ways
//	           ParseCommand   from a file: whole, strict, and what is wrong with it      the append-only file
//	           AppendCommand  an array of bulk strings                                   append-only file, clients, tests
//	replies    Append…        one function a type                                        sessions, scripts
//	           ReadReply      from a connection                                          health check, bench, tests
//	           ParseReply     from memory                                                scripts
//
// A socket and a file are read by different rules because Redis does so. What a peer sends may be cut anywhere, its lengths
// must be canonical ($4, not $04), and nobody looks at the two bytes behind an argument. A file is there as a whole: its
// lengths may have leading zeros, and a byte that is not as it should be is damage that must be found.
//
// # Bounds
//
// A length is checked before room is made for what it promises. A FrameReader keeps 16 bytes for each argument of an
// unfinished command (Held), and no bytes of its own; reading takes time by the length of what arrives, in whatever pieces.
// ReadReply takes lines up to the size of its reader's buffer, and strings up to 512 MB, for which it makes room as they come.
//
// # What a library does, and what it does not
//
// Replies are written by github.com/tidwall/redcon, which writes them as fast as can be and knows RESP2 only: the types of
// RESP3 are here. Its readers cannot be used. In 1.6.2, ReadNextCommand panics with a slice out of bounds on
// `*1\r\n$-2\r\n`, its server with an index out of range on `*1\r\n$9223372036854775807\r\n`, and ReadNextRESP on
// `$9223372036854775807\r\n`. They start anew with each piece that arrives, and take arguments such as "\x41" typed by hand
// otherwise than Redis does.
//
// Sources: https://redis.io/docs/latest/develop/reference/protocol-spec/ and Redis 7.2's networking.c, sds.c and aof.c.
package wire
