package resp

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"
)

// The values below are settings that one goroutine may change (CONFIG SET) while others read them. Each is a
// pflag.Value, so that the command line, the environment and CONFIG SET share one parser and one error text. Set changes
// nothing when it fails.
type value interface {
	pflag.Value
	parse(text string) (change, error)
}

// change is the next state of a value. CONFIG SET does each step for all its values before the next step, so it changes all
// or none.
type change struct {
	check func() error // an error refuses the change
	put   func()
	apply func() // its consequences, when all values are in place; it cannot fail
}

// set does all steps of a change of one value.
func set(c change, err error) error {
	if err == nil {
		err = c.check()
	}
	if err == nil {
		c.put()
		c.apply()
	}
	return err
}

// hooks are what the owner of a value adds to its changes.
type hooks[T any] struct {
	check func(T) error // nil: every value that can be read is allowed
	onSet func(T)       // nil: a change has no consequences
}

func (h *hooks[T]) change(to T, put func()) change {
	return change{
		check: func() error {
			if h.check == nil {
				return nil
			}
			return h.check(to)
		},
		put: put,
		apply: func() {
			if h.onSet != nil {
				h.onSet(to)
			}
		},
	}
}

// intValue is an integer between min and max.
type intValue struct {
	hooks[int64]
	n        atomic.Int64
	min, max int64
	unit     string // the kind of value, for --help
}

func newInt(value, least, most int64, unit string) *intValue {
	v := &intValue{min: least, max: most, unit: unit}
	v.n.Store(value)
	return v
}

func (v *intValue) Get() int64            { return v.n.Load() }
func (v *intValue) String() string        { return strconv.FormatInt(v.n.Load(), 10) }
func (v *intValue) Type() string          { return v.unit }
func (v *intValue) Set(text string) error { return set(v.parse(text)) }

func (v *intValue) parse(text string) (change, error) {
	n, ok := parseInt([]byte(text))
	if !ok {
		return change{}, fmt.Errorf("argument couldn't be parsed into an integer")
	}
	return v.to(n)
}

func (v *intValue) to(n int64) (change, error) {
	if n < v.min || n > v.max {
		return change{}, fmt.Errorf("argument must be between %d and %d inclusive", v.min, v.max)
	}
	return v.change(n, func() { v.n.Store(n) }), nil
}

// sizeValue is a number of bytes, with the units of redis.conf: 1k is 1000, 1kb is 1024, and so on for m, mb, g, gb, in any
// case.
type sizeValue struct{ intValue }

func newSize(value, least int64) *sizeValue {
	v := &sizeValue{intValue{min: least, max: math.MaxInt64, unit: "size"}}
	v.n.Store(value)
	return v
}

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"b", 1}, {"", 1},
}

// human writes the value in the largest unit that divides it.
func (v *sizeValue) human() string {
	n := v.Get()
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{{"gb", 1 << 30}, {"mb", 1 << 20}, {"kb", 1 << 10}} {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return v.String()
}

func (v *sizeValue) Set(text string) error { return set(v.parse(text)) }

func (v *sizeValue) parse(text string) (change, error) {
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
		return v.to(int64(n) * u.bytes)
	}
	return change{}, fmt.Errorf("argument must be a memory value")
}

// yesNoValue is a switch, written yes or no as in redis.conf.
type yesNoValue struct {
	hooks[bool]
	on atomic.Bool
}

func newYesNo(value bool) *yesNoValue {
	v := &yesNoValue{}
	v.on.Store(value)
	return v
}

func (v *yesNoValue) Get() bool    { return v.on.Load() }
func (v *yesNoValue) Type() string { return "yes|no" }
func (v *yesNoValue) String() string {
	if v.on.Load() {
		return "yes"
	}
	return "no"
}

func (v *yesNoValue) Set(text string) error { return set(v.parse(text)) }

func (v *yesNoValue) parse(text string) (change, error) {
	text = strings.ToLower(text)
	on := text == "yes"
	if !on && text != "no" {
		return change{}, fmt.Errorf("argument must be 'yes' or 'no'")
	}
	return v.change(on, func() { v.on.Store(on) }), nil
}

// enumValue is one of a few words.
type enumValue struct {
	hooks[string]
	words []string
	index atomic.Int64
}

func newEnum(words ...string) *enumValue { return &enumValue{words: words} }

func (v *enumValue) Get() string           { return v.words[v.index.Load()] }
func (v *enumValue) String() string        { return v.Get() }
func (v *enumValue) Type() string          { return strings.Join(v.words, "|") }
func (v *enumValue) Set(text string) error { return set(v.parse(text)) }

func (v *enumValue) parse(text string) (change, error) {
	i := slices.Index(v.words, strings.ToLower(text))
	if i < 0 {
		return change{}, fmt.Errorf("argument(s) must be one of the following: %s", strings.Join(v.words, ", "))
	}
	return v.change(v.words[i], func() { v.index.Store(int64(i)) }), nil
}

// textValue is a text that valid accepts.
type textValue struct {
	hooks[string]
	text  atomic.Pointer[string]
	kind  string
	valid func(string) error // nil: accepts any
}

func newText(value, kind string) *textValue {
	v := &textValue{kind: kind}
	v.text.Store(&value)
	return v
}

func (v *textValue) Get() string           { return *v.text.Load() }
func (v *textValue) String() string        { return v.Get() }
func (v *textValue) Type() string          { return v.kind }
func (v *textValue) Set(text string) error { return set(v.parse(text)) }

func (v *textValue) parse(text string) (change, error) {
	if v.valid != nil {
		if err := v.valid(text); err != nil {
			return change{}, err
		}
	}
	return v.change(text, func() { v.text.Store(&text) }), nil
}
