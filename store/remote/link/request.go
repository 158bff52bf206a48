package link

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// Request is a command for the engine.
type Request struct {
	Script   *Script // nil: Args is the whole command, with the key second
	Keys     []string
	Args     []string
	ReadOnly bool
	Deadline time.Time

	// Done is called once, from a goroutine of the pipeline, and must not block. The error is one of Classify's.
	Done func(answer rueidis.RedisMessage, err error)

	Sent time.Time // set when it is sent; zero: it is not

	whole bool // as EVAL, with the script's text: the engine did not know its digest
	probe bool // sent though the breaker is open
}

// Ignore is the Done of a request that nobody waits for.
func Ignore(rueidis.RedisMessage, error) {}

// Script is a Lua script that the engine knows by its digest.
type Script struct {
	text   string
	Digest string // in hexadecimal
}

// NewScript returns the script of a text.
func NewScript(text string) *Script {
	digest := sha1.Sum([]byte(text))
	return &Script{text, hex.EncodeToString(digest[:])}
}

func (r *Request) command(c rueidis.Client) rueidis.Completed {
	if r.Script == nil {
		b := c.B().Arbitrary(r.Args[0]).Keys(r.Keys...).Args(r.Args[1:]...)
		if r.ReadOnly {
			return b.ReadOnly()
		}
		return b.Build()
	}
	if r.whole {
		return c.B().Eval().Script(r.Script.text).Numkeys(int64(len(r.Keys))).Key(r.Keys...).Arg(r.Args...).Build()
	}
	return c.B().Arbitrary("EVALSHA", r.Script.Digest, strconv.Itoa(len(r.Keys))).Keys(r.Keys...).Args(r.Args...).Build()
}
