package persistence

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// rdbReader reads an RDB file key by key.
type rdbReader struct {
	*source
	version int
	text    []byte // what a compressed string was
	key     []byte

	savedNS int64 // the time of the file, or 0
	db      uint64
}

// rdbSink takes what a file has.
type rdbSink interface {
	// limit takes an integer; the key is valid until it returns. expiryMS is -1 for none.
	limit(key []byte, tat uint64, expiryMS int64) error
	// other takes what is no limit: the key, and what it is.
	other(key []byte, kind string)
}

// readRDB reads a whole RDB file, up to and with its checksum.
func readRDB(src *source, sink rdbSink) (savedNS int64, err error) {
	r := &rdbReader{source: src}
	start := src.at()
	if err := r.read(sink); err != nil {
		return 0, fmt.Errorf("damaged at byte %d: %w", src.at()-start, err)
	}
	return r.savedNS, nil
}

func (r *rdbReader) read(sink rdbSink) error {
	r.crc, r.seen = 0, r.pos
	header, err := r.take(rdbHeaderSize)
	if err != nil {
		return err
	}
	r.version, err = strconv.Atoi(string(header[5:]))
	if string(header[:5]) != "REDIS" || err != nil || r.version < 1 {
		return errors.New("it does not begin as an RDB file does")
	}
	if r.version > rdbMostKnown {
		return fmt.Errorf("RDB version %d is newer than %d", r.version, rdbMostKnown)
	}
	expiryMS := int64(-1)
	for {
		op, err := r.byte()
		if err != nil {
			return err
		}
		switch op {
		case opEOF:
			return r.end()
		case opExpiryMS, opExpiry:
			if expiryMS, err = r.expiry(op); err != nil {
				return err
			}
			continue
		case opSelectDB, opResizeDB, opAux, opIdle, opFreq, opFunction2, opModuleAux, opSlotInfo:
			if err := r.special(op); err != nil {
				return err
			}
			continue
		}
		if err := r.entry(op, expiryMS, sink); err != nil {
			return err
		}
		expiryMS = -1
	}
}

// end checks the checksum. 0 is that of a file whose writer was told not to compute it.
func (r *rdbReader) end() error {
	if r.version < 5 {
		return nil
	}
	computed := r.checksum()
	b, err := r.take(8)
	if err != nil {
		return err
	}
	if stored := binary.LittleEndian.Uint64(b); stored != 0 && stored != computed {
		return fmt.Errorf("its checksum is %016x, and that of its content %016x", stored, computed)
	}
	return nil
}

func (r *rdbReader) expiry(op byte) (ms int64, err error) {
	if op == opExpiry {
		b, err := r.take(4)
		if err != nil {
			return 0, err
		}
		return int64(binary.LittleEndian.Uint32(b)) * 1000, nil
	}
	b, err := r.take(8)
	if err != nil {
		return 0, err
	}
	return max(0, int64(binary.LittleEndian.Uint64(b))), nil
}

// special reads what is no key.
func (r *rdbReader) special(op byte) error {
	lengths, texts := 0, 0
	switch op {
	case opAux:
		return r.auxField()
	case opModuleAux:
		return r.module()
	case opFreq:
		_, err := r.byte()
		return err
	case opSelectDB:
		var err error
		r.db, err = r.length()
		return err
	case opIdle:
		lengths = 1
	case opResizeDB:
		lengths = 2
	case opSlotInfo:
		lengths = 3
	case opFunction2:
		texts = 1
	}
	return r.skip(lengths, texts)
}

func (r *rdbReader) auxField() error {
	name, err := r.string()
	if err != nil {
		return err
	}
	r.key = append(r.key[:0], name...)
	value, err := r.string()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	switch {
	case err != nil:
	case string(r.key) == auxTime:
		r.savedNS = n
	case string(r.key) == "ctime" && r.savedNS == 0 && 0 < n && n < math.MaxInt64/1_000_000_000:
		r.savedNS = n * 1e9 // cut off to seconds: a file that is loaded in the second it was written is not from the future
	}
	return nil
}

// entry reads a key and its value.
func (r *rdbReader) entry(kind byte, expiryMS int64, sink rdbSink) error {
	key, err := r.string()
	if err != nil {
		return err
	}
	r.key = append(r.key[:0], key...)
	if kind == typeString {
		value, err := r.string()
		if err != nil {
			return err
		}
		tat, err := parseTAT(value)
		if err != nil {
			sink.other(r.key, "string")
			return nil
		}
		if r.db != 0 {
			sink.other(r.key, "database "+strconv.FormatUint(r.db, 10))
			return nil
		}
		return sink.limit(r.key, tat, expiryMS)
	}
	name, known := typeNames[kind]
	if !known || kind == typeModule {
		return fmt.Errorf("a value of unknown type %d", kind)
	}
	sink.other(r.key, name)
	return r.skipValue(kind)
}

// lengthOrCode reads a length. Where it is the code of a special string, coded says so.
func (r *rdbReader) lengthOrCode() (n uint64, coded bool, err error) {
	first, err := r.byte()
	if err != nil {
		return 0, false, err
	}
	switch first >> 6 {
	case 0:
		return uint64(first), false, nil
	case 1:
		second, err := r.byte()
		return uint64(first&0x3f)<<8 | uint64(second), false, err
	case 3:
		return uint64(first & 0x3f), true, nil
	}
	switch first {
	case 0x80:
		b, err := r.take(4)
		if err != nil {
			return 0, false, err
		}
		return uint64(binary.BigEndian.Uint32(b)), false, nil
	case 0x81:
		b, err := r.take(8)
		if err != nil {
			return 0, false, err
		}
		return binary.BigEndian.Uint64(b), false, nil
	}
	return 0, false, fmt.Errorf("a length of unknown kind %#x", first)
}

func (r *rdbReader) length() (uint64, error) {
	n, coded, err := r.lengthOrCode()
	if err == nil && coded {
		err = errors.New("a coded string where a length should be")
	}
	return n, err
}

// string reads a string; it is valid until the next call.
func (r *rdbReader) string() ([]byte, error) {
	n, coded, err := r.lengthOrCode()
	if err != nil {
		return nil, err
	}
	if !coded {
		return r.take(n)
	}
	if n == 3 {
		return r.compressed()
	}
	if n > 3 {
		return nil, fmt.Errorf("a string of unknown coding %d", n)
	}
	b, err := r.take(1 << n)
	if err != nil {
		return nil, err
	}
	value := int64(int8(b[0]))
	switch n {
	case 1:
		value = int64(int16(binary.LittleEndian.Uint16(b)))
	case 2:
		value = int64(int32(binary.LittleEndian.Uint32(b)))
	}
	r.text = strconv.AppendInt(r.text[:0], value, 10)
	return r.text, nil
}

// mostText is how long a compressed string may be: as long as the longest key that can be sent.
const mostText = 512 << 20

// compressed reads a string in LZF: what Redis makes of those over 20 bytes that become shorter by it.
func (r *rdbReader) compressed() ([]byte, error) {
	packed, err := r.length()
	if err != nil {
		return nil, err
	}
	whole, err := r.length()
	if err != nil {
		return nil, err
	}
	// LZF makes 264 bytes of 3 at best.
	if packed > uint64(r.left()) || whole > mostText || whole > 88*packed {
		return nil, errors.New("a compressed string that is longer than it can be")
	}
	b, err := r.take(packed)
	if err != nil {
		return nil, err
	}
	var ok bool
	if r.text, ok = unpackLZF(r.text[:0], b, int(whole)); !ok {
		return nil, errors.New("a compressed string that cannot be unpacked")
	}
	return r.text, nil
}

// isRDB says whether a file begins as an RDB file.
func isRDB(start []byte) bool { return bytes.HasPrefix(start, []byte("REDIS")) }
