package persistence

import (
	"bytes"
	"fmt"
)

// damage is what is wrong with an append-only file, and where.
type damage struct {
	at   int64
	what string
	form bool // Redis's tools see it as well
	torn bool // the file merely ends in the middle of a command, or of a transaction
}

func (d *damage) Error() string { return fmt.Sprintf("damaged at byte %d: %s", d.at, d.what) }

// readAOF calls do for each command of an append-only file. args are valid until it returns. An error is do's, or a
// *damage. It returns the checksum of what follows the last stamp, and the latest time that a stamp tells.
//
// The commands of a transaction are done at its end. One that is not complete counts as torn from its start, and nothing of it
// is done: a key with limits is written as a transaction that begins with its DEL.
func readAOF(src *source, do func(args [][]byte) error) (crc uint64, savedNS int64, err error) {
	var args [][]byte
	var queued []byte   // of the transaction
	var multiCRC uint64 // the checksum before it
	multiAt, stampedAt := int64(-1), src.at()
	torn := func(crc uint64, at int64) (uint64, int64, error) {
		if multiAt >= 0 {
			return multiCRC, savedNS, &damage{at: multiAt, what: "it ends in the middle of a transaction", torn: true}
		}
		return crc, savedNS, &damage{at: at, what: "it ends in the middle of a command", torn: true}
	}
	for src.left() > 0 {
		at := src.at()
		var n int
		var what string
		for {
			args, n, what = parseCommand(src.buf[src.pos:], args[:0])
			if n > 0 || what != "" {
				break
			}
			have := len(src.buf) - src.pos
			if int64(have) == src.left() {
				return torn(src.checksum(), at)
			}
			if err := src.fill(have + 1); err != nil {
				return 0, 0, err
			}
		}
		if what != "" {
			crc := src.checksum()
			if src.endsInZeros() {
				return torn(crc, at)
			}
			return 0, 0, &damage{at: at, what: what, form: true}
		}
		if ns, ok, good := stampOf(args, src.checksum); ok {
			if !good {
				return 0, 0, &damage{at: stampedAt, what: fmt.Sprintf("what follows up to byte %d does not have the checksum that stands there", at)}
			}
			src.pos += n
			src.crc, src.seen = 0, src.pos
			stampedAt, savedNS = src.at(), max(savedNS, ns)
			continue
		}
		if len(args) > 0 && multiAt < 0 && bytes.EqualFold(args[0], []byte("MULTI")) {
			multiAt, multiCRC = at, src.checksum()
		}
		src.pos += n
		switch {
		case len(args) == 0, multiAt == at:
			continue
		case bytes.EqualFold(args[0], []byte("EXEC")):
			err = eachCommand(queued, do)
			multiAt, queued = -1, queued[:0]
		case multiAt >= 0:
			queued = append(queued, src.buf[src.pos-n:src.pos]...)
		default:
			err = do(args)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	if multiAt >= 0 {
		return torn(0, 0)
	}
	return src.checksum(), savedNS, nil
}

// eachCommand calls do for commands that have been taken apart before.
func eachCommand(b []byte, do func(args [][]byte) error) error {
	var args [][]byte
	for n := 0; len(b) > 0; b = b[n:] {
		if args, n, _ = parseCommand(b, args[:0]); n == 0 {
			return errEnd
		}
		if err := do(args); err != nil {
			return err
		}
	}
	return nil
}

// stampOf reads a command that is a stamp.
func stampOf(args [][]byte, crc func() uint64) (ns int64, ok, good bool) {
	if len(args) != 2 || !bytes.Equal(args[0], wordEcho) {
		return 0, false, false
	}
	return parseStamp(args[1], crc)
}

// endsInZeros says whether what is left is the start of a command, or nothing of it, and then zero bytes up to the end: what
// some file systems leave of the last writes before the power went, as the file has become longer before its blocks were
// written. Zeros that anything follows are damage. It takes what it looks at.
func (s *source) endsInZeros() bool {
	start := bytes.TrimRight(s.buf[s.pos:], "\x00")
	if _, n, what := parseCommand(start, nil); n > 0 || what != "" {
		return false
	}
	for s.pos += len(start); s.left() > 0; {
		b, err := s.byte()
		if err != nil || b != 0 {
			return false
		}
	}
	return true
}

const (
	mostWords   = 1 << 20
	mostWordLen = 512 << 20
)

// parseCommand takes one command apart: *3, and each word behind its length; or an annotation (#), which has no words. It
// returns its length, 0 where more bytes are needed, and what is wrong if something is.
func parseCommand(b []byte, args [][]byte) (_ [][]byte, n int, what string) {
	if len(b) > 0 && b[0] == '#' {
		end := bytes.IndexByte(b, '\n')
		if end < 0 && len(b) > 1024 {
			return nil, 0, "an annotation that is too long"
		}
		return nil, end + 1, ""
	}
	words, n, what := parseCount(b, '*', mostWords)
	if n == 0 {
		return nil, 0, what
	}
	if words == 0 {
		return nil, 0, "a command without words"
	}
	for range words {
		length, header, what := parseCount(b[n:], '$', mostWordLen)
		if header == 0 {
			return nil, 0, what
		}
		n += header
		if len(b)-n < length+2 {
			return args, 0, ""
		}
		if b[n+length] != '\r' || b[n+length+1] != '\n' {
			return nil, 0, "a word that does not end where its length says"
		}
		args = append(args, b[n:n+length])
		n += length + 2
	}
	return args, n, ""
}

// parseCount reads a line such as *3 or $16.
func parseCount(b []byte, mark byte, most int) (count, n int, what string) {
	if len(b) == 0 {
		return 0, 0, ""
	}
	if b[0] != mark {
		return 0, 0, fmt.Sprintf("%q where %q should be", b[0], mark)
	}
	for n = 1; n < len(b); n++ {
		c := b[n]
		if c == '\r' && n > 1 {
			switch {
			case n+1 == len(b):
				return 0, 0, ""
			case b[n+1] != '\n':
				return 0, 0, "a line that does not end as it should"
			}
			return count, n + 2, ""
		}
		if c < '0' || c > '9' {
			return 0, 0, fmt.Sprintf("%q in a number", c)
		}
		if count = count*10 + int(c-'0'); count > most {
			return 0, 0, "a number that is too large"
		}
	}
	return 0, 0, ""
}
