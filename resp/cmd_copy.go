package resp

import (
	"bytes"
	"errors"
	"math"
	"strings"

	"celld/resp/command"
	"celld/store"
)

func cmdRenameNX(s *Session, args [][]byte) {
	switch there, moved, err := s.store().RenameNew(args[1], args[2], s.access()); {
	case err != nil:
		s.replyStoreError(err)
	case there:
		s.replyBool(moved)
	default:
		s.replyError(errNoSuchKey)
	}
}

// cmdCopy accepts DB 0 only: there is one database.
func cmdCopy(s *Session, args [][]byte) {
	replace := false
	for rest := args[3:]; len(rest) > 0; rest = rest[1:] {
		switch option := strings.ToLower(string(rest[0])); {
		case option == "replace":
			replace = true
		case option == "db" && len(rest) > 1:
			rest = rest[1:]
			if text := checkDB(rest[0]); text != "" {
				s.replyError("%s", text)
				return
			}
		default:
			s.replyError(errSyntax)
			return
		}
	}
	if bytes.Equal(args[1], args[2]) {
		s.replyError(errSameKey)
		return
	}
	copied, err := s.store().Copy(args[1], args[2], replace, s.access())
	if errors.Is(err, store.ErrFull) {
		s.replyError(errOOM)
		return
	}
	s.replyBool(copied)
}

// checkDB returns the text of an error for any database but 0.
func checkDB(arg []byte) string {
	switch n, ok := command.ParseInt(arg); {
	case !ok:
		return errNotInteger
	case n < math.MinInt32 || n > math.MaxInt32:
		return formatError(errNotBetween, math.MinInt32, math.MaxInt32)
	case n != 0:
		return errDBIndex
	}
	return ""
}
