package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"celld/persistence/source"
	"celld/store"
)

// reader reads an RDB file key by key. Its methods return nothing useful once err is set.
type reader struct {
	*source.Source
	sink Sink
	err  error  // the first one
	text []byte // the last string that was unpacked
	key  []byte

	savedNS int64 // when the file was written, Unix nanoseconds; 0: not known
	db      uint64
}

// Sink receives what a file contains.
type Sink interface {
	// String takes a key that holds a string. Both are valid until it returns. expiryMS is -1 for none.
	String(key, text []byte, expiryMS int64) error
	// Field takes one field of a hash. After all fields of the hash, Hash takes its key.
	Field(f *Fields, name, text []byte)
	Hash(key []byte, f *Fields, expiryMS int64) error
	// Setting takes an auxiliary field, and reports whether it is a policy or a rule.
	Setting(name, text string) bool
	// Other takes a key of another type, or of another database, and its kind.
	Other(key []byte, kind string)
}

// Fields are the fields of a hash that is being read.
type Fields struct {
	Fields []store.Field
	Bad    bool // the hash has a field that is no limit
}

// DamageError says what is wrong with a file, and at which byte. It wraps source.ErrEnd if the file ends too early, or the error of the
// file or the Sink.
type DamageError struct {
	At  int64
	Err error
}

func (e *DamageError) Error() string { return fmt.Sprintf("damaged at byte %d: %v", e.At, e.Err) }
func (e *DamageError) Unwrap() error { return e.Err }

// Read reads an RDB file up to the end of its checksum. savedNS is when it was written, Unix nanoseconds, or 0. The error is a
// *DamageError.
func Read(src *source.Source, sink Sink) (savedNS int64, err error) {
	r := &reader{Source: src, sink: sink}
	start := src.At()
	r.read()
	if r.err != nil {
		return 0, &DamageError{src.At() - start, r.err}
	}
	return r.savedNS, nil
}

// fail keeps the first error. From then on nothing is read, and At stays where it happened.
func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// bytes returns the next n bytes, valid until the next call, or nil after an error.
func (r *reader) bytes(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	b, err := r.Take(n)
	if err != nil {
		r.err = err
	}
	return b
}

// byte returns the next byte, or 0 after an error.
func (r *reader) byte() byte {
	if r.err != nil {
		return 0
	}
	b, err := r.Source.Byte()
	if err != nil {
		r.err = err
	}
	return b
}

// little reads a little-endian number of up to 8 bytes.
func (r *reader) little(size uint64) uint64 {
	var b [8]byte
	copy(b[:], r.bytes(size))
	return binary.LittleEndian.Uint64(b[:])
}

func (r *reader) read() {
	r.StartChecksum()
	header := r.bytes(HeaderSize)
	if r.err != nil {
		return
	}
	version, err := Version(header)
	if err != nil {
		r.fail(err)
	}
	expiryMS := int64(-1)
	for r.err == nil {
		switch op := r.byte(); op {
		case opEOF:
			if version >= 5 {
				r.compareChecksum()
			}
			return
		case opExpiryMS:
			expiryMS = max(0, int64(r.little(8)))
		case opExpiry:
			expiryMS = int64(r.little(4)) * 1000
		case opAux:
			r.auxField()
		case opModuleAux:
			r.module()
		case opFreq:
			r.byte()
		case opSelectDB:
			r.db = r.length()
		case opIdle:
			r.skip(1, 0)
		case opResizeDB:
			r.skip(2, 0)
		case opSlotInfo:
			r.skip(3, 0)
		case opFunction2:
			r.skip(0, 1)
		default:
			r.entry(op, expiryMS)
			expiryMS = -1
		}
	}
}

// Version reads the version of a header of HeaderSize bytes. The error says why the file cannot be read.
func Version(header []byte) (version int, err error) {
	version, err = strconv.Atoi(string(header[5:]))
	switch {
	case !IsFile(header) || err != nil || version < 1:
		return 0, errors.New("it does not begin as an RDB file does")
	case version > mostKnown:
		return 0, fmt.Errorf("RDB version %d is newer than %d", version, mostKnown)
	}
	return version, nil
}

// compareChecksum checks the checksum of the file. 0 means that its writer computed none (rdbchecksum no).
func (r *reader) compareChecksum() {
	computed := r.Checksum()
	if stored := r.little(8); stored != 0 && stored != computed {
		r.fail(fmt.Errorf("its checksum is %016x, and that of its content %016x", stored, computed))
	}
}

func (r *reader) auxField() {
	r.key = append(r.key[:0], r.string()...)
	value := r.string()
	if r.err != nil || r.sink.Setting(string(r.key), string(value)) {
		return
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	switch {
	case err != nil:
	case string(r.key) == auxTime:
		r.savedNS = n
	case string(r.key) == "ctime" && r.savedNS == 0 && 0 < n && n < math.MaxInt64/1_000_000_000:
		r.savedNS = n * 1e9 // whole seconds, rounded down, so a file written just now is not from the future
	}
}

// entry reads a key and its value.
func (r *reader) entry(kind byte, expiryMS int64) {
	if r.err != nil {
		return
	}
	r.key = append(r.key[:0], r.string()...)
	name, known := typeNames[kind]
	switch {
	case kind == typeString:
		r.stringEntry(expiryMS)
	case r.err != nil:
	case !known || kind == typeModule:
		r.fail(fmt.Errorf("a value of unknown type %d", kind))
	case name == "hash" && r.db == 0:
		var f Fields
		bad := r.hashValue(kind, func(name, value []byte) { r.sink.Field(&f, name, value) })
		f.Bad = f.Bad || bad
		if r.err == nil {
			r.fail(r.sink.Hash(r.key, &f, expiryMS))
		}
	default:
		r.sink.Other(r.key, name)
		r.skipValue(kind)
	}
}

// stringEntry reads the value of a string.
func (r *reader) stringEntry(expiryMS int64) {
	value := r.string()
	switch {
	case r.err != nil:
	case r.db != 0:
		r.sink.Other(r.key, "database "+strconv.FormatUint(r.db, 10))
	default:
		r.fail(r.sink.String(r.key, value, expiryMS))
	}
}

// lengthOrCode reads a length, or the code of a string that is coded.
func (r *reader) lengthOrCode() (n uint64, coded bool) {
	first := r.byte()
	switch first >> 6 {
	case 0:
		return uint64(first), false
	case 1:
		return uint64(first&0x3f)<<8 | uint64(r.byte()), false
	case 3:
		return uint64(first & 0x3f), true
	}
	var b [8]byte // big-endian
	switch first {
	case 0x80:
		copy(b[4:], r.bytes(4))
	case 0x81:
		copy(b[:], r.bytes(8))
	default:
		r.fail(fmt.Errorf("a length of unknown kind %#x", first))
	}
	return binary.BigEndian.Uint64(b[:]), false
}

func (r *reader) length() uint64 {
	n, coded := r.lengthOrCode()
	if coded {
		r.fail(errors.New("a coded string where a length should be"))
	}
	return n
}

// Codings of a string: an integer of 1, 2 or 4 bytes, or LZF.
const (
	codedInt8  = 0
	codedInt16 = 1
	codedInt32 = 2
	codedLZF   = 3
)

// string reads a string; it is valid until the next call.
func (r *reader) string() []byte {
	n, coded := r.lengthOrCode()
	if !coded {
		return r.bytes(n)
	}
	var value int64
	switch n {
	case codedInt8:
		value = int64(int8(r.byte()))
	case codedInt16:
		value = int64(int16(r.little(2)))
	case codedInt32:
		value = int64(int32(r.little(4)))
	case codedLZF:
		return r.compressed()
	default:
		r.fail(fmt.Errorf("a string of unknown coding %d", n))
		return nil
	}
	r.text = strconv.AppendInt(r.text[:0], value, 10)
	return r.text
}

// mostText bounds the unpacked length of a string in bytes. It is the longest key that a client can send.
const mostText = 512 << 20

// compressed reads a string in LZF. Redis compresses strings of more than 20 bytes if that makes them shorter.
func (r *reader) compressed() []byte {
	packed, whole := r.length(), r.length()
	if r.err != nil {
		return nil
	}
	// 3 bytes of LZF unpack to 264 at most.
	if packed > uint64(r.Left()) || whole > mostText || whole > 88*packed {
		r.fail(errors.New("a compressed string that is longer than it can be"))
		return nil
	}
	var ok bool
	if r.text, ok = unpackLZF(r.text[:0], r.bytes(packed), int(whole)); !ok {
		r.fail(errors.New("a compressed string that cannot be unpacked"))
	}
	return r.text
}

// IsFile reports whether start is the start of an RDB file.
func IsFile(start []byte) bool { return bytes.HasPrefix(start, []byte("REDIS")) }
