package keys

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/store"
)

func exists(c *command.Call) {
	c.EachKey(func(c *command.Call, key []byte) bool {
		_, ok := c.Keys().Get(key, c.Access())
		return ok
	}, (*command.Call).Int)
}

// touch marks keys as used even for a connection in no-touch mode, as in Redis.
func touch(c *command.Call) {
	c.EachKey(func(c *command.Call, key []byte) bool {
		_, ok := c.Keys().Get(key, store.Access{NowNS: c.NowNS})
		return ok
	}, (*command.Call).Int)
}

func typeOf(c *command.Call) {
	st, ok := c.Keys().Get(c.Args[1], unseen(c))
	if !ok {
		c.Status("none")
		return
	}
	c.Status(c.TypeOf(c.Args[1], st))
}

func rename(c *command.Call) {
	switch there, err := c.Keys().Rename(c.Args[1], c.Args[2], c.Access()); {
	case err != nil:
		c.Fail(err)
	case there:
		c.OK()
	default:
		c.Error(errNoSuchKey)
	}
}

func renameNX(c *command.Call) {
	switch there, moved, err := c.Keys().RenameNew(c.Args[1], c.Args[2], c.Access()); {
	case err != nil:
		c.Fail(err)
	case there:
		c.Bool(moved)
	default:
		c.Error(errNoSuchKey)
	}
}

var copyWords = argument.Options{Flags: []string{"REPLACE"}, Valued: []string{"DB"}, Refusal: argument.ErrSyntax}

// copyKey accepts DB 0 only: there is one database.
func copyKey(c *command.Call) {
	replace := false
	text := copyWords.Read(c.Args[3:], func(option string, value []byte) string {
		if option == "DB" {
			return checkDB(value)
		}
		replace = true
		return ""
	})
	if text != "" {
		c.Error("%s", text)
		return
	}
	if bytes.Equal(c.Args[1], c.Args[2]) {
		c.Error(errSameKey)
		return
	}
	copied, err := c.Keys().Copy(c.Args[1], c.Args[2], replace, c.Access())
	if errors.Is(err, store.ErrFull) {
		c.Fail(err)
		return
	}
	c.Bool(copied)
}

// checkDB returns the text of an error for any database but 0.
func checkDB(arg []byte) string {
	switch n, ok := argument.ParseInt(arg); {
	case !ok:
		return argument.ErrNotInteger
	case n < math.MinInt32 || n > math.MaxInt32:
		return fmt.Sprintf(argument.ErrNotBetween, math.MinInt32, math.MaxInt32)
	case n != 0:
		return argument.ErrDBIndex
	}
	return ""
}

// object looks up a key for OBJECT, without marking it as used. It answers null if there is none.
func object(c *command.Call) (store.Value, bool) {
	st, ok := c.Keys().Get(c.Args[2], unseen(c))
	if !ok {
		c.Null()
	}
	return st, ok
}

// objectEncoding answers as Redis would. In Redis, a TAT above the largest int64 is a short string and not an integer.
func objectEncoding(c *command.Call) {
	if st, ok := object(c); !ok {
		return
	} else if st.HoldsLimits {
		c.String("listpack")
	} else if st.TAT > math.MaxInt64 {
		c.String("embstr")
	} else {
		c.String("int")
	}
}

func objectFreq(c *command.Call) {
	if _, ok := object(c); ok {
		c.Error(errObjectFreq)
	}
}

func objectIdleTime(c *command.Call) {
	if idleNS, ok := c.Keys().IdleNS(c.Args[2], c.NowNS); ok {
		c.Int(idleNS / 1e9)
	} else {
		c.Null()
	}
}

func objectRefCount(c *command.Call) {
	if _, ok := object(c); ok {
		c.Int(1)
	}
}
