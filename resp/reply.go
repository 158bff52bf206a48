package resp

import (
	"fmt"
	"strconv"

	"celld/resp/wire"
)

// Replies are appended to the session's output, in the protocol that its client has chosen.

func (s *Session) replyOK()                { s.out = append(s.out, "+OK\r\n"...) }
func (s *Session) replyStatus(text string) { s.out = wire.AppendStatus(s.out, text) }
func (s *Session) replyInt(n int64)        { s.out = wire.AppendInt(s.out, n) }
func (s *Session) replyBool(yes bool)      { s.out = wire.AppendBool(s.out, yes, false) } // Redis's commands say 1 or 0
func (s *Session) replyBulk(b []byte)      { s.out = wire.AppendBulk(s.out, b) }
func (s *Session) replyString(text string) { s.out = wire.AppendString(s.out, text) }
func (s *Session) replyArray(n int)        { s.out = wire.AppendArray(s.out, n) }
func (s *Session) replyMap(n int)          { s.out = wire.AppendMap(s.out, n, s.resp3) }
func (s *Session) replySet(n int)          { s.out = wire.AppendSet(s.out, n, s.resp3) }
func (s *Session) replyNull()              { s.out = wire.AppendNull(s.out, s.resp3) }

// replyNullArray is what EXEC answers when a watched key changed.
func (s *Session) replyNullArray() { s.out = wire.AppendNullArray(s.out, s.resp3) }

// replyText is text for people (INFO, CLIENT LIST), which a tool prints as it is.
func (s *Session) replyText(text string) { s.out = wire.AppendVerbatim(s.out, "txt", text, s.resp3) }

func (s *Session) replyDouble(f float64) {
	s.out = wire.AppendDouble(s.out, strconv.FormatFloat(f, 'g', -1, 64), s.resp3)
}

func (s *Session) replyStrings(list []string) {
	s.out = wire.AppendBulks(wire.AppendArray(s.out, len(list)), list...)
}

// replyStatuses is a set of words, such as COMMAND INFO's flags.
func (s *Session) replyStatuses(words []string) {
	s.replySet(len(words))
	for _, word := range words {
		s.replyStatus(word)
	}
}

// replyPair, replyField and replyPairs write fields of a map, whose size the caller has written.
func (s *Session) replyPair(name, value string) {
	s.replyString(name)
	s.replyString(value)
}

func (s *Session) replyField(name string, n int64) {
	s.replyString(name)
	s.replyInt(n)
}

func (s *Session) replyPairs(pairs [][2]string) {
	for _, p := range pairs {
		s.replyPair(p[0], p[1])
	}
}

// replyError appends an error, which may be a format: of one of errors.go, or "%s".
func (s *Session) replyError(format string, args ...any) {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	s.out = wire.AppendError(s.out, format)
}
