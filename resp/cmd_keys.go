package resp

import (
	"math"
	"strings"

	"celld/resp/command"
	"celld/resp/glob"
	"celld/resp/wire"
	"celld/store"
)

func cmdExists(s *Session, args [][]byte) {
	s.eachKey(args, func(s *Session, key []byte) bool {
		_, ok := s.store().Get(key, s.access())
		return ok
	}, (*Session).replyInt)
}

// cmdTouch marks keys as used even for a connection in no-touch mode, as in Redis.
func cmdTouch(s *Session, args [][]byte) {
	s.eachKey(args, func(s *Session, key []byte) bool {
		_, ok := s.store().Get(key, store.Access{NowNS: s.nowNS})
		return ok
	}, (*Session).replyInt)
}

func cmdDel(s *Session, args [][]byte) {
	s.eachKey(args, func(s *Session, key []byte) bool { return s.store().Delete(key, s.nowNS) }, (*Session).replyInt)
}

// typeNames are the types that Redis's tools see.
var typeNames = [...]string{store.HoldsTAT: "string", store.HoldsLimits: "hash"}

func cmdType(s *Session, args [][]byte) {
	st, ok := s.store().Get(args[1], store.Access{NowNS: s.nowNS, NoTouch: true})
	if !ok {
		s.replyStatus("none")
		return
	}
	s.replyStatus(s.typeOf(args[1], st.Kind))
}

func cmdRename(s *Session, args [][]byte) {
	switch there, err := s.store().Rename(args[1], args[2], s.access()); {
	case err != nil:
		s.replyStoreError(err)
	case there:
		s.replyOK()
	default:
		s.replyError(errNoSuchKey)
	}
}

func cmdRandomKey(s *Session, _ [][]byte) {
	if key, ok := s.store().Random(s.nowNS); ok {
		s.replyString(key)
	} else {
		s.replyNull()
	}
}

// keysStep is how many keys KEYS looks at, or writes, in a step.
const keysStep = 1000

// stepWork bounds what is done in one go, in steps of about 1 ns: the bytes of the keys, times the words of the pattern's set, and
// keyWork for each key.
const (
	stepWork = 1 << 20
	keyWork  = 32
)

// insideWork bounds KEYS in a transaction or a script, beside which nobody else runs: 5 ms.
const insideWork = 5 * stepWork

// cmdKeys walks the table in steps, and then writes what it has found in steps.
func cmdKeys(s *Session, args [][]byte) {
	g, ok := glob.Compile(args[1], false)
	if !ok {
		s.replyError(errPatternLong, glob.MaxWild)
		return
	}
	var found []string
	bytesFound, work, cursor, walked := 0, 0, uint64(0), false
	s.inSteps(args, func(s *Session, _ [][]byte) (more bool) {
		if walked {
			some := found[:min(len(found), keysStep)]
			found = found[len(some):]
			s.call.Out = wire.AppendBulks(s.call.Out, some...)
			return len(found) > 0
		}
		cursor = s.walk(cursor, keysStep, g, &work, func(key string, _ store.Value) {
			if g.Match([]byte(key)) {
				found = append(found, key)
				bytesFound += len(key) + 16
			}
		})
		switch walked = cursor == 0; {
		case s.overOutput(bytesFound):
			return false
		case walked:
			s.replyArray(len(found))
		case s.tx.running && work > insideWork:
			s.replyError(errKeysInside)
			return false
		}
		return !walked || len(found) > 0
	})
}

// walk is Store.Scan, but ends after stepWork even if it has not looked at so many places. It adds to work.
func (s *Session) walk(cursor uint64, places int, g *glob.Pattern, work *int, fn func(key string, st store.Value)) (next uint64) {
	until := *work + stepWork
	for n := max(1, 16/g.Steps(1)); places > 0 && *work < until; n = min(2*n, 256) {
		n = min(n, places)
		places -= n
		before := *work
		cursor = s.store().Scan(cursor, n, s.nowNS, func(key string, st store.Value) {
			*work += keyWork + g.Steps(len(key))
			fn(key, st)
		})
		if cursor == 0 {
			break
		}
		if *work-before > stepWork/16 {
			n = 1
		}
	}
	return cursor
}

// maxScanStep bounds the work of one SCAN, whatever its COUNT: 10,000 keys are about 1 ms.
const maxScanStep = 10_000

func cmdScan(s *Session, args [][]byte) {
	cursor, ok := command.ParseDigits(args[1])
	if !ok {
		s.replyError(errInvalidCursor)
		return
	}
	o := scanOptions{count: 10}
	if text := o.parse(args[2:]); text != "" {
		s.replyError("%s", text)
		return
	}
	var found []string
	work := 0
	next := s.walk(cursor, int(min(o.count, maxScanStep)), o.glob, &work, func(key string, st store.Value) {
		if (!o.typed || o.ofType == typeNames[st.Kind]) && o.matches(key) {
			found = append(found, key)
		}
	})
	s.replyArray(2)
	s.replyString(command.FormatTAT(next))
	s.replyStrings(found)
}

// scanOptions are the options of SCAN, and those of HSCAN, which has no TYPE.
type scanOptions struct {
	pattern []byte
	glob    *glob.Pattern // of pattern; nil: all match
	count   int64
	ofType  string
	typed   bool
}

// parse reads the options. It returns the text of an error, or "".
func (o *scanOptions) parse(args [][]byte) string {
	for ; len(args) > 0; args = args[2:] {
		if len(args) == 1 {
			return errSyntax
		}
		var ok bool
		switch strings.ToLower(string(args[0])) {
		case "count":
			if o.count, ok = command.ParseInt(args[1]); !ok {
				return errNotInteger
			}
			if o.count < 1 {
				return errSyntax
			}
		case "match":
			o.pattern = args[1]
			if o.glob, ok = glob.Compile(args[1], false); !ok {
				return formatError(errPatternLong, glob.MaxWild)
			}
		case "type":
			o.ofType, o.typed = strings.ToLower(string(args[1])), true
		default:
			return errSyntax
		}
	}
	return ""
}

func (o *scanOptions) matches(name string) bool {
	return o.glob == nil || o.glob.Match([]byte(name))
}

func objectRows() []*command.Row {
	key := command.KeyRange{First: 2, Last: 2, Step: 1}
	return []*command.Row{
		{Name: "encoding", Arity: 3, Flags: command.Readonly, Keys: key, Access: command.Looks, Usage: "key", Summary: "Returns the encoding of a key's value.", Since: "2.2.3", Group: "generic", Run: onSession(cmdObjectEncoding)},
		{Name: "freq", Arity: 3, Flags: command.Readonly, Keys: key, Access: command.Looks, Usage: "key", Summary: "Returns an error: celld does not count uses.", Since: "4.0.0", Group: "generic", Run: onSession(cmdObjectFreq)},
		{Name: "idletime", Arity: 3, Flags: command.Readonly, Keys: key, Access: command.Looks, Usage: "key", Summary: "Returns the seconds since a key was used.", Since: "2.2.3", Group: "generic", Run: onSession(cmdObjectIdleTime)},
		{Name: "refcount", Arity: 3, Flags: command.Readonly, Keys: key, Access: command.Looks, Usage: "key", Summary: "Returns 1 for a key that exists.", Since: "2.2.3", Group: "generic", Run: onSession(cmdObjectRefCount)},
	}
}

// object looks up a key for OBJECT, without marking it as used. It answers null if there is none.
func (s *Session) object(key []byte) (store.Value, bool) {
	st, ok := s.store().Get(key, store.Access{NowNS: s.nowNS, NoTouch: true})
	if !ok {
		s.replyNull()
	}
	return st, ok
}

// cmdObjectEncoding answers as Redis would. In Redis, a TAT above the largest int64 is a short string and not an integer.
func cmdObjectEncoding(s *Session, args [][]byte) {
	if st, ok := s.object(args[2]); !ok {
		return
	} else if st.Kind == store.HoldsLimits {
		s.replyString("listpack")
	} else if st.TAT > math.MaxInt64 {
		s.replyString("embstr")
	} else {
		s.replyString("int")
	}
}

func cmdObjectFreq(s *Session, args [][]byte) {
	if _, ok := s.object(args[2]); ok {
		s.replyError(errObjectFreq)
	}
}

func cmdObjectIdleTime(s *Session, args [][]byte) {
	if idleNS, ok := s.store().IdleNS(args[2], s.nowNS); ok {
		s.replyInt(idleNS / 1e9)
	} else {
		s.replyNull()
	}
}

func cmdObjectRefCount(s *Session, args [][]byte) {
	if _, ok := s.object(args[2]); ok {
		s.replyInt(1)
	}
}
