package persistence

import (
	"encoding/binary"
	"hash/crc64"
	"io"
	"strconv"

	"celld/store"
)

// An RDB file is REDIS, a version of four digits, opcodes with their values, and a checksum. Redis's rdb.h describes the
// format. celld writes the part that strings and hashes need.
//
// The tests compare with github.com/hdt3213/rdb, which reads and writes the whole format. The server does not use it, for four
// reasons. It writes version 11, which redis-server 7.0 refuses. It ignores the checksum. It accepts a file that is cut off
// behind an auxiliary field. It allocates any length that a damaged file names. It is also slower: 331 ns a key to write and
// 235 to read, against 56 and 67 (go test ./persistence -bench RDB).
const (
	rdbVersion    = 9 // Redis 5; all that came later read it
	rdbMostKnown  = 12
	rdbHeaderSize = 9

	opSlotInfo    = 244
	opFunction2   = 245
	opFunctionPre = 246
	opModuleAux   = 247
	opIdle        = 248
	opFreq        = 249
	opAux         = 250
	opResizeDB    = 251
	opExpiryMS    = 252
	opExpiry      = 253
	opSelectDB    = 254
	opEOF         = 255
)

// auxTime is the auxiliary field that holds the time at which celld finished a file, in Unix nanoseconds.
const auxTime = "celld-time"

// jones is the CRC that Redis uses: CRC-64 with the polynomial of Jones, reflected, starting at 0.
var jones = crc64.MakeTable(0x95ac9329ac4bc9b5)

func jonesUpdate(crc uint64, p []byte) uint64 { return ^crc64.Update(^crc, jones, p) }

// rdbWriter builds an RDB file in memory and writes it in pieces of flushAt bytes.
type rdbWriter struct {
	w    io.Writer
	buf  []byte
	crc  uint64
	keys int64
	size int64 // written so far
}

func newRDBWriter(w io.Writer, nowNS int64, keys int64, version string) *rdbWriter {
	f := &rdbWriter{w: w, buf: append(make([]byte, 0, flushAt+flushAt/4), "REDIS0009"...)}
	f.aux("celld-ver", version)
	f.aux("redis-bits", "64")
	f.aux("ctime", strconv.FormatInt(nowNS/1e9, 10))
	if keys > 0 {
		f.buf = append(f.buf, opSelectDB, 0, opResizeDB) // a hint: how much to make room for
		f.buf = appendLength(f.buf, uint64(keys))
		f.buf = appendLength(f.buf, uint64(keys))
	}
	return f
}

// flushAt is the size of a piece in bytes.
const flushAt = 256 << 10

// add takes a key; it does not write.
func (f *rdbWriter) add(key []byte, st store.Value) {
	f.keys++
	if at := expiryMS(st); at >= 0 {
		f.buf = append(f.buf, opExpiryMS)
		f.buf = binary.LittleEndian.AppendUint64(f.buf, uint64(at))
	}
	if st.Kind == store.HoldsLimits {
		f.hash(key, *st.Limits)
		return
	}
	f.buf = append(f.buf, typeString)
	f.buf = appendString(f.buf, key)
	var digits [20]byte
	f.buf = appendString(f.buf, appendTAT(digits[:0], st.TAT))
}

func (f *rdbWriter) aux(name, value string) {
	f.buf = append(f.buf, opAux)
	f.buf = appendString(f.buf, []byte(name))
	f.buf = appendString(f.buf, []byte(value))
}

// flush writes what has been gathered.
func (f *rdbWriter) flush() error {
	f.crc = jonesUpdate(f.crc, f.buf)
	n, err := f.w.Write(f.buf)
	f.size += int64(n)
	f.buf = f.buf[:0]
	return err
}

// finish writes the end of the file, with the time nowNS: no state in the file is newer.
func (f *rdbWriter) finish(nowNS int64) error {
	f.aux(auxTime, strconv.FormatInt(nowNS, 10))
	f.buf = append(f.buf, opEOF)
	if err := f.flush(); err != nil {
		return err
	}
	n, err := f.w.Write(binary.LittleEndian.AppendUint64(nil, f.crc))
	f.size += int64(n)
	return err
}

// appendLength writes a length: 6 bits in a byte, 14 in two, 32 in five or 64 in nine.
func appendLength(b []byte, n uint64) []byte {
	switch {
	case n < 1<<6:
		return append(b, byte(n))
	case n < 1<<14:
		return append(b, byte(n>>8)|0x40, byte(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, 0x80), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0x81), n)
}

// appendString writes a string as it is. Redis also has integers and compressed strings, but reads this form, too.
func appendString(b, text []byte) []byte { return append(appendLength(b, uint64(len(text))), text...) }
