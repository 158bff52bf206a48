package aof

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"celld/persistence/source"
	"celld/resp/wire"
)

// AppendStamp writes a stamp, a command that changes nothing: ECHO "1763739000000000000 0123456789abcdef". It holds the time in Unix
// nanoseconds, and a checksum of that time and of everything since the last stamp. Redis writes only the time, as an annotation (#TS:):
// Redis before 7.0 cannot read that, and redis-cli --pipe would send it as a command.
func AppendStamp(b []byte, nowNS int64, crc uint64) []byte {
	text := make([]byte, 0, 40)
	text = strconv.AppendInt(text, nowNS, 10)
	crc = source.Checksum(crc, text)
	text = append(text, ' ')
	text = hex.AppendEncode(text, binary.BigEndian.AppendUint64(nil, crc))
	return wire.AppendCommand(b, wordEcho, text)
}

// parseStamp reads the text of a stamp. ok: it is one. good: crc, the checksum of what stands before it, fits.
func parseStamp(text []byte, crc func() uint64) (ns int64, ok, good bool) {
	at, sum, found := bytes.Cut(text, []byte(" "))
	ns, err := strconv.ParseInt(string(at), 10, 64)
	want, err2 := strconv.ParseUint(string(sum), 16, 64)
	if !found || len(sum) != 16 || err != nil || err2 != nil {
		return 0, false, false
	}
	return ns, true, source.Checksum(crc(), at) == want
}

// stampOf reads a command as a stamp. ok: it is one. good: its checksum is right.
func stampOf(args [][]byte, crc func() uint64) (ns int64, ok, good bool) {
	if len(args) != 2 || !bytes.Equal(args[0], wordEcho) {
		return 0, false, false
	}
	return parseStamp(args[1], crc)
}
