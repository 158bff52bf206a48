package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"celld/resp/command/argument"
)

// value is a param of any type. As it is a pflag.Value, the command line, the environment and CONFIG SET share one parser and one
// error text.
type value interface {
	pflag.Value
	parse(text string) (change, error)
}

// change is the next state of a param. CONFIG SET does each step for all its parameters before the next step, so it changes all
// or none.
type change struct {
	check func() error // an error refuses the change
	put   func()
	apply func() // its consequences, when all parameters are in place; it cannot fail
}

// Param is the value of a setting. One goroutine at a time may change it (CONFIG SET); any may read it meanwhile.
type Param[T any] struct {
	current atomic.Pointer[T]
	kind    string // for --help
	read    func(text string) (T, error)
	write   func(T) string
	check   func(T) error // nil: every value that can be read is allowed
	onSet   func(T)       // nil: a change has no consequences
}

func newParam[T any](value T, kind string, read func(string) (T, error), write func(T) string) *Param[T] {
	p := &Param[T]{kind: kind, read: read, write: write}
	p.current.Store(&value)
	return p
}

// Put changes the value unseen: it neither checks it nor calls the function of OnSet.
func (p *Param[T]) Put(value T) { p.current.Store(&value) }

// Check sets the function that may refuse a value. OnSet sets the function to call after each change, and Follow calls it now as well. Call
// them before the server runs.
func (p *Param[T]) Check(check func(T) error) { p.check = check }
func (p *Param[T]) OnSet(do func(T))          { p.onSet = do }
func (p *Param[T]) Follow(do func(T)) {
	p.onSet = do
	do(p.Get())
}

func (p *Param[T]) Get() T         { return *p.current.Load() }
func (p *Param[T]) String() string { return p.write(p.Get()) }
func (p *Param[T]) Type() string   { return p.kind }

// Set changes nothing when it fails.
func (p *Param[T]) Set(text string) error {
	c, err := p.parse(text)
	if err == nil {
		err = c.check()
	}
	if err == nil {
		c.put()
		c.apply()
	}
	return err
}

func (p *Param[T]) parse(text string) (change, error) {
	value, err := p.read(text)
	if err != nil {
		return change{}, err
	}
	return change{
		check: func() error {
			if p.check == nil {
				return nil
			}
			return p.check(value)
		},
		put: func() { p.current.Store(&value) },
		apply: func() {
			if p.onSet != nil {
				p.onSet(value)
			}
		},
	}, nil
}

// NewInt makes an integer from least to most.
func NewInt(value, least, most int64, unit string) *Param[int64] {
	return newParam(value, unit, func(text string) (int64, error) {
		n, ok := argument.ParseInt([]byte(text))
		if !ok {
			return 0, fmt.Errorf("argument couldn't be parsed into an integer")
		}
		return n, checkRange(n, least, most)
	}, formatInt)
}

func checkRange(n, least, most int64) error {
	if n < least || n > most {
		return fmt.Errorf("argument must be between %d and %d inclusive", least, most)
	}
	return nil
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// NewSize makes a number of bytes, with the units of redis.conf: 1k is 1000, 1kb is 1024, and so on for m, mb, g, gb, in any
// case.
func NewSize(value, least int64) *Param[int64] {
	return newParam(value, "size", func(text string) (int64, error) {
		lower := strings.ToLower(text)
		for _, u := range sizeUnits {
			digits, found := strings.CutSuffix(lower, u.suffix)
			if !found {
				continue
			}
			n, err := strconv.ParseUint(digits, 10, 63)
			if err != nil || int64(n) > math.MaxInt64/u.bytes {
				break
			}
			return int64(n) * u.bytes, checkRange(int64(n)*u.bytes, least, math.MaxInt64)
		}
		return 0, fmt.Errorf("argument must be a memory value")
	}, formatInt)
}

// sizeUnits begin with those that sizeText writes.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"gb", 1 << 30}, {"mb", 1 << 20}, {"kb", 1 << 10}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"b", 1}, {"", 1},
}

// sizeText writes a size as users do, in the largest unit that divides it: 64mb.
func sizeText(n int64) string {
	for _, u := range sizeUnits[:3] {
		if n != 0 && n%u.bytes == 0 {
			return formatInt(n/u.bytes) + u.suffix
		}
	}
	return formatInt(n)
}

// NewYesNo makes a switch, written yes or no as in redis.conf.
func NewYesNo(value bool) *Param[bool] {
	return newParam(value, "yes|no", func(text string) (bool, error) {
		switch strings.ToLower(text) {
		case "yes":
			return true, nil
		case "no":
			return false, nil
		}
		return false, fmt.Errorf("argument must be 'yes' or 'no'")
	}, func(on bool) string {
		if on {
			return "yes"
		}
		return "no"
	})
}

// newEnum makes one of a few words, of which the first is the default.
func newEnum(words ...string) *Param[string] {
	return newParam(words[0], strings.Join(words, "|"), func(text string) (string, error) {
		for _, word := range words {
			if strings.EqualFold(word, text) {
				return word, nil
			}
		}
		return "", fmt.Errorf("argument(s) must be one of the following: %s", strings.Join(words, ", "))
	}, verbatim)
}

// NewText makes a text. check says what is wrong with one; nil: any will do.
func NewText(value, kind string, check func(string) error) *Param[string] {
	return newParam(value, kind, func(text string) (string, error) {
		if check == nil {
			return text, nil
		}
		return text, check(text)
	}, verbatim)
}

// NewSecret makes a text that is read as it is, and shown by show.
func NewSecret(kind string, show func(string) string) *Param[string] {
	return newParam("", kind, func(text string) (string, error) { return text, nil }, show)
}

// NewDuration makes a duration, written as 300ms or 2s.
func NewDuration(value, least, most time.Duration) *Param[time.Duration] {
	return newParam(value, "duration", func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			return 0, fmt.Errorf("argument must be a duration such as 300ms or 2s")
		case d < least || d > most:
			return 0, fmt.Errorf("argument must be between %v and %v inclusive", least, most)
		}
		return d, nil
	}, time.Duration.String)
}

func verbatim(text string) string { return text }

// Hidden shows whether there is a secret.
func Hidden(text string) string {
	if text == "" {
		return ""
	}
	return "(secret)"
}

// CheckHostPort refuses what is neither empty nor host:port.
func CheckHostPort(text string) error {
	if text == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(text)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host == "" || strconv.FormatUint(n, 10) != port {
		return errors.New("argument must be host:port, such as 127.0.0.1:8080 or *:8080")
	}
	return nil
}

// Into makes a param write its value there, too, for who reads it after the start.
func Into[T any](to *T, p *Param[T]) value {
	p.Follow(func(v T) { *to = v })
	return p
}

// Parsed makes a text that parse reads, and writes what it reads there.
func Parsed[T any](to *T, text, kind string, parse func(text string) (T, error)) value {
	p := NewText(text, kind, Readable(parse))
	p.Follow(func(text string) { *to, _ = parse(text) })
	return p
}
