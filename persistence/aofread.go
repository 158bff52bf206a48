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
	form bool // redis-check-aof sees it as well
	torn bool // the file ends in the middle of a command or of a transaction
	open bool // torn, and some commands of that transaction have run
}

func (d *damage) Error() string { return fmt.Sprintf("damaged at byte %d: %s", d.at, d.what) }

// readAOF calls do for each command of an append-only file; args are valid until do returns. It returns the checksum of what
// follows the last stamp, and the latest time of all stamps in Unix nanoseconds. The error is do's or a *damage.
//
// An incomplete transaction counts as torn from its start, and none of it runs, unless it is longer than mostHeld.
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

// mostHeld is how many bytes of a transaction are held back until its end. celld's own transactions have one key.
const mostHeld = 16 << 20

// transaction holds back the commands of one until it is complete.
type transaction struct {
	do    func(args [][]byte) error
	at    int64  // where it begins; -1: no transaction is open
	crc   uint64 // of what is between the last stamp and at
	held  [][][]byte
	bytes int
	begun bool // it was longer than mostHeld, and its first commands have run
}

func (t *transaction) begin(at int64, crc uint64) {
	if t.at < 0 {
		t.at, t.crc = at, crc
	}
}

// end runs what was held back.
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

// torn returns readAOF's results for a file that ends in the middle of a command. The command begins at at, and crc is the
// checksum up to there.
func (t *transaction) torn(at int64, crc uint64, savedNS int64) (uint64, int64, error) {
	if t.at >= 0 {
		return t.crc, savedNS, &damage{at: t.at, what: "it ends in the middle of a transaction", torn: true, open: t.begun}
	}
	return crc, savedNS, &damage{at: at, what: "it ends in the middle of a command", torn: true}
}

// stampOf reads a command as a stamp. ok: it is one. good: its checksum is right.
func stampOf(args [][]byte, crc func() uint64) (ns int64, ok, good bool) {
	if len(args) != 2 || !bytes.Equal(args[0], wordEcho) {
		return 0, false, false
	}
	return parseStamp(args[1], crc)
}

// endsInZeros says whether only zero bytes are left, perhaps behind the start of a command. Some file systems leave such a
// tail after a power failure, as they make the file longer before they write its blocks. Zeros with anything behind them are
// damage. endsInZeros consumes what it reads.
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

// parseCommand reads one command as wire.ParseCommand does, or an annotation (#), which has no words.
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
