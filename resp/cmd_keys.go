package resp

import (
	"math"
	"strings"

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

// keysStep is how many keys KEYS reads under one lock.
const keysStep = 1000

// cmdKeys walks the table in steps, and then writes what it has found in steps.
func cmdKeys(s *Session, args [][]byte) {
	var found []string
	bytesFound, cursor, walked := 0, uint64(0), false
	s.inSteps(args, func(s *Session, args [][]byte) (more bool) {
		if walked {
			some := found[:min(len(found), keysStep)]
			found = found[len(some):]
			s.out = wire.AppendBulks(s.out, some...)
			return len(found) > 0
		}
		cursor = s.store().Scan(cursor, keysStep, s.nowNS, func(key string, _ store.Value) {
			if globMatch(args[1], []byte(key)) {
				found = append(found, key)
				bytesFound += len(key) + 16
			}
		})
		if s.overOutput(bytesFound) {
			return false
		}
		if walked = cursor == 0; walked {
			s.replyArray(len(found))
		}
		return !walked || len(found) > 0
	})
}

// maxScanStep bounds the work of one SCAN, whatever its COUNT: 10,000 keys are about 1 ms.
const maxScanStep = 10_000

func cmdScan(s *Session, args [][]byte) {
	cursor, ok := parseDigits(args[1])
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
	next := s.store().Scan(cursor, int(min(o.count, maxScanStep)), s.nowNS, func(key string, st store.Value) {
		if (!o.typed || o.ofType == typeNames[st.Kind]) && o.matches(key) {
			found = append(found, key)
		}
	})
	s.replyArray(2)
	s.replyString(formatTAT(next))
	s.replyStrings(found)
}

// scanOptions are the options of SCAN, and those of HSCAN, which has no TYPE.
type scanOptions struct {
	pattern []byte
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
		switch strings.ToLower(string(args[0])) {
		case "count":
			var ok bool
			if o.count, ok = parseInt(args[1]); !ok {
				return errNotInteger
			}
			if o.count < 1 {
				return errSyntax
			}
		case "match":
			o.pattern = args[1]
		case "type":
			o.ofType, o.typed = strings.ToLower(string(args[1])), true
		default:
			return errSyntax
		}
	}
	return ""
}

func (o *scanOptions) matches(name string) bool {
	return o.pattern == nil || globMatch(o.pattern, []byte(name))
}

func objectRows() []*command {
	key := keyRange{first: 2, last: 2, step: 1}
	return []*command{
		{name: "encoding", arity: 3, flags: readonly, keys: key, access: looks, usage: "key", summary: "Returns the encoding of a key's value.", since: "2.2.3", group: "generic", run: cmdObjectEncoding},
		{name: "freq", arity: 3, flags: readonly, keys: key, access: looks, usage: "key", summary: "Returns an error: celld does not count uses.", since: "4.0.0", group: "generic", run: cmdObjectFreq},
		{name: "idletime", arity: 3, flags: readonly, keys: key, access: looks, usage: "key", summary: "Returns the seconds since a key was used.", since: "2.2.3", group: "generic", run: cmdObjectIdleTime},
		{name: "refcount", arity: 3, flags: readonly, keys: key, access: looks, usage: "key", summary: "Returns 1 for a key that exists.", since: "2.2.3", group: "generic", run: cmdObjectRefCount},
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
