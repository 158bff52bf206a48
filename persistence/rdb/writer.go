package rdb

import (
	"encoding/binary"
	"io"
	"strconv"

	"celld/persistence/source"
	"celld/store"
)

// The tests compare with github.com/hdt3213/rdb, which reads and writes the whole format. The server does not use it, for four
// reasons. It writes version 11, which redis-server 7.0 refuses. It ignores the checksum. It accepts a file that is cut off
// behind an auxiliary field. It allocates any length that a damaged file names. It is also slower: 331 ns a key to write and
// 235 to read, against 56 and 67 (go -C integration_test test ./persistence -bench RDB).
const (
	writtenVersion = 9 // Redis 5; all that came later read it
	mostKnown      = 12
	HeaderSize     = 9 // bytes

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

// Writer builds an RDB file in memory and writes it in pieces of 256 KB.
type Writer struct {
	Keys int64 // added so far
	Size int64 // bytes written so far

	w   io.Writer
	buf []byte
	crc uint64
}

// NewWriter begins a file, which it writes to w: version is that of celld, and nowNS the time in Unix nanoseconds. keys is about how many
// keys the file will hold: Redis makes room for so many.
func NewWriter(w io.Writer, nowNS, keys int64, version string) *Writer {
	f := &Writer{w: w, buf: append(make([]byte, 0, pieceBytes+pieceBytes/4), "REDIS0009"...)}
	f.Aux("celld-ver", version)
	f.Aux("redis-bits", "64")
	f.Aux("ctime", strconv.FormatInt(nowNS/1e9, 10))
	if keys > 0 {
		f.buf = append(f.buf, opSelectDB, 0, opResizeDB) // a hint: how many keys to make room for
		f.buf = appendLength(f.buf, uint64(keys))
		f.buf = appendLength(f.buf, uint64(keys))
	}
	return f
}

// pieceBytes is the size of a piece.
const pieceBytes = 256 << 10

// Full reports whether Flush is due.
func (f *Writer) Full() bool { return len(f.buf) >= pieceBytes }

// Add takes a key; it does not write.
func (f *Writer) Add(key []byte, st store.Value) {
	f.Keys++
	if at := ExpiryMS(st); at >= 0 {
		f.buf = append(f.buf, opExpiryMS)
		f.buf = binary.LittleEndian.AppendUint64(f.buf, uint64(at))
	}
	if st.HoldsLimits {
		f.hash(key, *st.Limits)
		return
	}
	f.buf = append(f.buf, typeString)
	f.buf = appendString(f.buf, key)
	var digits [20]byte
	f.buf = appendString(f.buf, st.AppendInteger(digits[:0]))
}

// Aux adds an auxiliary field, such as a setting by its name of SettingNames.
func (f *Writer) Aux(name, value string) {
	f.buf = append(f.buf, opAux)
	f.buf = appendString(f.buf, []byte(name))
	f.buf = appendString(f.buf, []byte(value))
}

// Flush writes what was gathered.
func (f *Writer) Flush() error {
	f.crc = source.Checksum(f.crc, f.buf)
	n, err := f.w.Write(f.buf)
	f.Size += int64(n)
	f.buf = f.buf[:0]
	return err
}

// Finish writes the end of the file, with the time nowNS: no state in the file is newer.
func (f *Writer) Finish(nowNS int64) error {
	f.Aux(auxTime, strconv.FormatInt(nowNS, 10))
	f.buf = append(f.buf, opEOF)
	if err := f.Flush(); err != nil {
		return err
	}
	n, err := f.w.Write(binary.LittleEndian.AppendUint64(nil, f.crc))
	f.Size += int64(n)
	return err
}

// hash adds a key with limits.
func (f *Writer) hash(key []byte, limits store.Limits) {
	f.buf = append(f.buf, typeHash)
	f.buf = appendString(f.buf, key)
	f.buf = appendLength(f.buf, uint64(len(limits)))
	var text []byte
	for i := range limits {
		l := &limits[i]
		text = l.AppendName(text[:0])
		f.buf = appendString(f.buf, text)
		text = l.Limit.AppendState(text[:0], &l.State)
		f.buf = appendString(f.buf, text)
	}
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

// appendString writes a string as it is. Redis also writes integers and compressed strings, but reads this form, too.
func appendString(b, text []byte) []byte { return append(appendLength(b, uint64(len(text))), text...) }
