package persistence

import (
	"bytes"
	"fmt"

	"celld/resp/wire"
)

// damage is what is wrong with an append-only file, and where.
type damage struct {
	at   int64
	what string
	form bool // Redis's tools see it as well
	torn bool // the file merely ends in the middle of a command, or of a transaction,
	open bool // some of whose commands have been done
}

func (d *damage) Error() string { return fmt.Sprintf("damaged at byte %d: %s", d.at, d.what) }

// readAOF calls do for each command of an append-only file. args are valid until it returns. An error is do's, or a
// *damage. It returns the checksum of what follows the last stamp, and the latest time that a stamp tells.
//
// A transaction that is not complete counts as torn from its start, and none of it is done, unless it is longer than mostHeld.
func readAOF(src *source, do func(args [][]byte) error) (crc uint64, savedNS int64, err error) {
	var args [][]byte
	t := transaction{do: do, at: -1}
	stampedAt := src.at()
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
				return t.torn(at, src.checksum(), savedNS)
			}
			if err := src.fill(have + 1); err != nil {
				return 0, 0, err
			}
		}
		if what != "" {
			crc := src.checksum()
			if src.endsInZeros() {
				return t.torn(at, crc, savedNS)
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
		switch {
		case len(args) == 0:
		case bytes.EqualFold(args[0], wordMulti):
			t.begin(at, src.checksum())
		case bytes.EqualFold(args[0], wordExec):
			err = t.end()
		default:
			err = t.command(args)
		}
		if err != nil {
			return 0, 0, err
		}
		src.pos += n
	}
	if t.at >= 0 {
		return t.torn(src.at(), 0, savedNS)
	}
	return src.checksum(), savedNS, nil
}

var (
	wordMulti = []byte("MULTI")
	wordExec  = []byte("EXEC")
)

// mostHeld is how many bytes of a transaction wait for its end. Our own have one key.
const mostHeld = 16 << 20

// transaction holds back the commands of one until it is complete.
type transaction struct {
	do    func(args [][]byte) error
	at    int64  // where it begins; -1: there is none
	crc   uint64 // of what follows the last stamp, up to there
	held  [][][]byte
	bytes int
	begun bool // it was longer than mostHeld, and the first of it has been done
}

func (t *transaction) begin(at int64, crc uint64) {
	if t.at < 0 {
		t.at, t.crc = at, crc
	}
}

// end does what has been held back.
func (t *transaction) end() error {
	err := t.doHeld()
	t.at, t.begun = -1, false
	return err
}

func (t *transaction) doHeld() error {
	for _, args := range t.held {
		if err := t.do(args); err != nil {
			return err
		}
	}
	t.held, t.bytes = nil, 0
	return nil
}

func (t *transaction) command(args [][]byte) error {
	if t.at < 0 || t.begun {
		return t.do(args)
	}
	held := make([][]byte, len(args))
	for i, arg := range args {
		held[i] = bytes.Clone(arg)
		t.bytes += len(arg) + 24
	}
	if t.held = append(t.held, held); t.bytes <= mostHeld {
		return nil
	}
	t.begun = true
	return t.doHeld()
}

// torn is what readAOF returns of a file that ends in the middle of what begins there, and with such a checksum before it.
func (t *transaction) torn(at int64, crc uint64, savedNS int64) (uint64, int64, error) {
	if t.at >= 0 {
		return t.crc, savedNS, &damage{at: t.at, what: "it ends in the middle of a transaction", torn: true, open: t.begun}
	}
	return crc, savedNS, &damage{at: at, what: "it ends in the middle of a command", torn: true}
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

// parseCommand takes one command of the file apart, as wire.ParseCommand does, or an annotation (#), which has no words.
func parseCommand(b []byte, args [][]byte) (_ [][]byte, n int, what string) {
	if len(b) > 0 && b[0] == '#' {
		end := bytes.IndexByte(b, '\n')
		if end < 0 && len(b) > 1024 {
			return nil, 0, "an annotation that is too long"
		}
		return nil, end + 1, ""
	}
	return wire.ParseCommand(b, args)
}
