package persistence

import "fmt"

// The types of values. Only strings can be limits; of the others it must be known where they end.
const (
	typeString         = 0
	typeList           = 1
	typeSet            = 2
	typeZSet           = 3
	typeHash           = 4
	typeZSet2          = 5
	typeModule         = 6
	typeModule2        = 7
	typeHashZipmap     = 9
	typeListZiplist    = 10
	typeSetIntset      = 11
	typeZSetZiplist    = 12
	typeHashZiplist    = 13
	typeListQuicklist  = 14
	typeStream         = 15
	typeHashListpack   = 16
	typeZSetListpack   = 17
	typeListQuicklist2 = 18
	typeStream2        = 19
	typeSetListpack    = 20
	typeStream3        = 21
	typeHashFieldTTLRC = 22 // of release candidates of 7.4
	typeHashListTTLRC  = 23
	typeHashFieldTTL   = 24
	typeHashListTTL    = 25
)

var typeNames = map[byte]string{
	typeList: "list", typeSet: "set", typeZSet: "zset", typeHash: "hash", typeZSet2: "zset", typeModule: "module", typeModule2: "module",
	typeHashZipmap: "hash", typeListZiplist: "list", typeSetIntset: "set", typeZSetZiplist: "zset", typeHashZiplist: "hash",
	typeListQuicklist: "list", typeStream: "stream", typeHashListpack: "hash", typeZSetListpack: "zset", typeListQuicklist2: "list",
	typeStream2: "stream", typeSetListpack: "set", typeStream3: "stream",
	typeHashFieldTTLRC: "hash", typeHashListTTLRC: "hash", typeHashFieldTTL: "hash", typeHashListTTL: "hash",
}

// skip passes over so many lengths and then strings.
func (r *rdbReader) skip(lengths, texts int) error {
	for range lengths {
		if _, err := r.length(); err != nil {
			return err
		}
	}
	for range texts {
		if err := r.skipString(); err != nil {
			return err
		}
	}
	return nil
}

func (r *rdbReader) skipString() error {
	n, coded, err := r.lengthOrCode()
	switch {
	case err != nil:
		return err
	case coded && n < 3:
		n = 1 << n
	case coded && n == 3:
		if n, err = r.length(); err != nil {
			return err
		}
		if _, err = r.length(); err != nil {
			return err
		}
	case coded:
		return fmt.Errorf("a string of unknown coding %d", n)
	}
	return r.skipBytes(n)
}

func (r *rdbReader) skipBytes(n uint64) error {
	if n > uint64(r.left()) {
		return errEnd
	}
	for n > 0 {
		part := min(n, 64<<10)
		if _, err := r.take(part); err != nil {
			return err
		}
		n -= part
	}
	return nil
}

// each calls f as often as the length says that comes next.
func (r *rdbReader) each(f func() error) error {
	n, err := r.length()
	for ; n > 0 && err == nil; n-- {
		err = f()
	}
	return err
}

func (r *rdbReader) skipValue(kind byte) error {
	text := r.skipString
	switch kind {
	case typeList, typeSet, typeListQuicklist:
		return r.each(text)
	case typeHash:
		return r.each(func() error { return r.skip(0, 2) })
	case typeZSet:
		return r.each(func() error {
			if err := text(); err != nil {
				return err
			}
			n, err := r.byte()
			if err != nil || n >= 253 { // infinities and no number
				return err
			}
			return r.skipBytes(uint64(n))
		})
	case typeZSet2:
		return r.each(func() error {
			if err := text(); err != nil {
				return err
			}
			return r.skipBytes(8)
		})
	case typeListQuicklist2:
		return r.each(func() error { return r.skip(1, 1) })
	case typeModule2:
		return r.module()
	case typeStream, typeStream2, typeStream3:
		return r.stream(kind)
	case typeHashFieldTTL, typeHashListTTL:
		if err := r.skipBytes(8); err != nil {
			return err
		}
	}
	if kind == typeHashFieldTTL || kind == typeHashFieldTTLRC {
		return r.each(func() error { return r.skip(1, 2) })
	}
	return text() // all others are one string
}

// module passes over what a module wrote: its number, and then values each behind its kind.
func (r *rdbReader) module() error {
	if _, err := r.length(); err != nil {
		return err
	}
	for {
		kind, err := r.length()
		if err != nil {
			return err
		}
		switch kind {
		case 0:
			return nil
		case 1, 2:
			_, err = r.length()
		case 3:
			err = r.skipBytes(4)
		case 4:
			err = r.skipBytes(8)
		case 5:
			err = r.skipString()
		default:
			err = fmt.Errorf("a module's value of unknown kind %d", kind)
		}
		if err != nil {
			return err
		}
	}
}

// stream passes over entries, counters, and the consumer groups with what each has been given.
func (r *rdbReader) stream(kind byte) error {
	if err := r.each(func() error { return r.skip(0, 2) }); err != nil {
		return err
	}
	counters := 3
	if kind != typeStream {
		counters = 8
	}
	if err := r.skip(counters, 0); err != nil {
		return err
	}
	return r.each(func() error { return r.consumerGroup(kind) })
}

func (r *rdbReader) consumerGroup(kind byte) error {
	if err := r.skipString(); err != nil {
		return err
	}
	counters := 2
	if kind != typeStream {
		counters = 3
	}
	if err := r.skip(counters, 0); err != nil {
		return err
	}
	const idBytes, timeBytes = 16, 8
	err := r.each(func() error {
		if err := r.skipBytes(idBytes + timeBytes); err != nil {
			return err
		}
		return r.skip(1, 0)
	})
	if err != nil {
		return err
	}
	return r.each(func() error {
		if err := r.skipString(); err != nil {
			return err
		}
		times := uint64(timeBytes)
		if kind == typeStream3 {
			times = 2 * timeBytes
		}
		if err := r.skipBytes(times); err != nil {
			return err
		}
		return r.each(func() error { return r.skipBytes(idBytes) })
	})
}
