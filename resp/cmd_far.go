package resp

import (
	"context"

	"celld/resp/command"
	"celld/resp/glob"
	"celld/store/remote"
)

// Commands over all keys, where an engine keeps them. They see those of the engine's prefix, on all its masters.

// farFunc asks the engine, and has done called once, from any goroutine, with what replies. It does not block. ctx ends when the client has gone.
type farFunc func(ctx context.Context, s *Session, args [][]byte, done func(reply func(*Session)))

// replyOr returns what replies, or an error if there is one.
func replyOr(err error, reply func(*Session)) func(*Session) {
	if err != nil {
		return func(s *Session) { s.replyStoreError(err) }
	}
	return reply
}

func farScan(ctx context.Context, s *Session, args [][]byte, done func(func(*Session))) {
	cursor, ok := command.ParseDigits(args[1])
	if !ok {
		done(func(s *Session) { s.replyError(errInvalidCursor) })
		return
	}
	o := scanOptions{count: 10}
	if text := o.parse(args[2:]); text != "" {
		done(func(s *Session) { s.replyError("%s", text) })
		return
	}
	if o.typed && o.ofType == "" {
		done(func(s *Session) { s.call.Out = append(s.call.Out, "*2\r\n$1\r\n0\r\n*0\r\n"...) })
		return
	}
	of := remote.ScanOptions{Cursor: cursor, Count: min(o.count, maxScanStep), Type: o.ofType, Pattern: "*"}
	if o.pattern != nil {
		of.Pattern = string(o.pattern)
	}
	s.srv.engine.Scan(ctx, of, func(next uint64, keys []string, err error) {
		done(replyOr(err, func(s *Session) {
			s.replyArray(2)
			s.replyString(command.FormatTAT(next))
			s.replyStrings(keys)
		}))
	})
}

func farKeys(ctx context.Context, s *Session, args [][]byte, done func(func(*Session))) {
	if _, ok := glob.Compile(args[1], false); !ok {
		done(func(s *Session) { s.replyError(errPatternLong, glob.MaxWild) })
		return
	}
	most := int(s.srv.cfg.outputBufferLimit.Get())
	s.srv.engine.Keys(ctx, string(args[1]), most, func(keys []string, err error) {
		done(replyOr(err, func(s *Session) {
			bytes := 0
			for _, key := range keys {
				bytes += len(key) + 16
			}
			if !s.overOutput(bytes) {
				s.replyStrings(keys)
			}
		}))
	})
}

func farDBSize(ctx context.Context, s *Session, _ [][]byte, done func(func(*Session))) {
	s.srv.engine.Size(ctx, func(n int64, err error) {
		done(replyOr(err, func(s *Session) { s.replyInt(n) }))
	})
}

func farRandomKey(ctx context.Context, s *Session, _ [][]byte, done func(func(*Session))) {
	s.srv.engine.RandomKey(ctx, func(key string, found bool, err error) {
		done(replyOr(err, func(s *Session) {
			if found {
				s.replyString(key)
			} else {
				s.replyNull()
			}
		}))
	})
}

// farFlush goes on when its client has gone.
func farFlush(_ context.Context, s *Session, args [][]byte, done func(func(*Session))) {
	if !mayFlush(args) {
		done(func(s *Session) { s.replyError(errSyntax) })
		return
	}
	s.srv.engine.Flush(func(err error) {
		done(replyOr(err, (*Session).replyOK))
	})
}
