package aof

import (
	"bytes"
	"fmt"
	"strings"

	"celld/persistence/source"
	"celld/resp/wire"
)

// DamageError says what is wrong with an append-only file, and where.
type DamageError struct {
	At   int64 // byte
	What string
	Form bool // redis-check-aof sees it, too
	Torn bool // the file ends in the middle of a command or of a transaction
}

func (e *DamageError) Error() string { return fmt.Sprintf("damaged at byte %d: %s", e.At, e.What) }

// Read calls do for each command of an append-only file; args are valid until do returns. It returns the checksum of what
// follows the last stamp, and the latest time of all stamps in Unix nanoseconds. The error is do's or a *DamageError.
//
// An incomplete transaction counts as torn from its start, and none of it runs.
func Read(src *source.Source, do func(args [][]byte) error) (crc uint64, savedNS int64, err error) {
	r := reader{src: src, transaction: transaction{do: do, at: -1}, stampedAt: src.At()}
	for err == nil && src.Left() > 0 {
		err = r.next()
	}
	if err == nil {
		err = r.end()
	}
	return r.crc, r.savedNS, err
}

// reader reads command after command.
type reader struct {
	src       *source.Source
	args      [][]byte // of the command
	stampedAt int64    // where the last stamp ends
	savedNS   int64
	crc       uint64 // at the end: that of what follows the last stamp
	transaction
}

// next reads one command and runs it.
func (r *reader) next() (err error) {
	at := r.src.At()
	n, err := r.parse()
	if err != nil {
		return err
	}
	ns, ok, good := stampOf(r.args, r.src.Checksum)
	switch {
	case ok && !good:
		return &DamageError{At: r.stampedAt, What: fmt.Sprintf("what follows up to byte %d does not match the checksum there", at)}
	case ok:
		r.src.Skip(n)
		r.src.StartChecksum()
		r.stampedAt, r.savedNS = r.src.At(), max(r.savedNS, ns)
		return nil
	case len(r.args) == 0:
	case is(r.args[0], "MULTI"):
		r.begin(at, r.src.Checksum())
	case is(r.args[0], "EXEC"):
		err = r.exec()
	default:
		err = r.command(r.args)
	}
	r.src.Skip(n)
	if err == nil && r.bytes > mostHeld {
		err = r.lookAhead()
	}
	return err
}

func is(word []byte, name string) bool {
	return len(word) == len(name) && strings.EqualFold(string(word), name)
}

// lookAhead looks for the end of a transaction that is too long to hold back. If it is there, what was held back runs, and so does the rest
// from now on. To read ahead costs a third of a second for 100 MB, and no memory.
func (r *reader) lookAhead() error {
	ahead := reader{src: r.src.Ahead(), transaction: transaction{at: r.at, crc: r.transaction.crc}}
	for ahead.src.Left() > 0 {
		n, err := ahead.parse()
		if err != nil {
			r.crc = ahead.crc
			return err
		}
		if ahead.src.Skip(n); len(ahead.args) > 0 && is(ahead.args[0], "EXEC") {
			r.whole = true
			return r.doHeld()
		}
	}
	r.crc = r.transaction.crc
	return r.torn(r.src.At(), 0)
}

// parse reads the words of a command, and returns the length of its text, which is still to be skipped.
func (r *reader) parse() (n int, err error) {
	for {
		var what string
		r.args, n, what = ParseCommand(r.src.Rest(), r.args[:0])
		if n > 0 {
			return n, nil
		}
		at, have := r.src.At(), len(r.src.Rest())
		switch {
		case what != "":
			crc := r.src.Checksum()
			if endsInZeros(r.src) {
				return 0, r.torn(at, crc)
			}
			return 0, &DamageError{At: at, What: what, Form: true}
		case int64(have) == r.src.Left():
			return 0, r.torn(at, r.src.Checksum())
		}
		if err := r.src.Fill(have + 1); err != nil {
			return 0, err
		}
	}
}

// end ends the file behind a whole command.
func (r *reader) end() error {
	if r.at >= 0 {
		return r.torn(r.src.At(), 0)
	}
	r.crc = r.src.Checksum()
	return nil
}

// torn ends a file that ends in the middle of a command, which begins at at. crc is the checksum up to there.
func (r *reader) torn(at int64, crc uint64) error {
	if r.at >= 0 {
		r.crc = r.transaction.crc
		return &DamageError{At: r.at, What: "it ends in the middle of a transaction", Torn: true}
	}
	r.crc = crc
	return &DamageError{At: at, What: "it ends in the middle of a command", Torn: true}
}

// mostHeld is how many bytes of a transaction are held back until its end. Of a longer one the reader looks for the end first.
const mostHeld = 16 << 20

// transaction holds back the commands of one until it is complete.
type transaction struct {
	do    func(args [][]byte) error
	at    int64  // where it begins; -1: no transaction is open
	crc   uint64 // of what is between the last stamp and at
	held  [][][]byte
	bytes int
	whole bool // its end is there, so nothing is held back
}

func (t *transaction) begin(at int64, crc uint64) {
	if t.at < 0 {
		t.at, t.crc = at, crc
	}
}

// exec runs what was held back.
func (t *transaction) exec() error {
	err := t.doHeld()
	t.at, t.whole = -1, false
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
	if t.at < 0 || t.whole {
		return t.do(args)
	}
	held := make([][]byte, len(args))
	for i, arg := range args {
		held[i] = bytes.Clone(arg)
		t.bytes += len(arg) + 24
	}
	t.held = append(t.held, held)
	return nil
}

// endsInZeros reports whether only zero bytes are left, perhaps behind the start of a command. Some file systems leave such a tail after a
// power failure, as they make the file longer before they write its blocks. Zeros with anything behind them are damage. endsInZeros
// consumes what it reads.
func endsInZeros(s *source.Source) bool {
	start := bytes.TrimRight(s.Rest(), "\x00")
	if _, n, what := ParseCommand(start, nil); n > 0 || what != "" {
		return false
	}
	for s.Skip(len(start)); s.Left() > 0; {
		b, err := s.Byte()
		if err != nil || b != 0 {
			return false
		}
	}
	return true
}

// ParseCommand reads one command as wire.ParseCommand does, or an annotation (#), which is no words. n is the length of its text; 0: it is
// incomplete, or what says what is wrong with it.
func ParseCommand(b []byte, args [][]byte) (_ [][]byte, n int, what string) {
	if len(b) > 0 && b[0] == '#' {
		end := bytes.IndexByte(b, '\n')
		if end < 0 && len(b) > 1024 {
			return nil, 0, "an annotation that is too long"
		}
		return nil, end + 1, ""
	}
	return wire.ParseCommand(b, args)
}
