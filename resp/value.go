package resp

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// The values below are settings that one goroutine may change (CONFIG SET) while others read them. Each is a
// pflag.Value, so that the command line, the environment and CONFIG SET share one parser and one error text. Set changes
// nothing when it fails.

// intValue is an integer between min and max.
type intValue struct {
	n        atomic.Int64
	min, max int64
	unit     string // what --help shows as the kind of value
	onSet    func(int64)
}

func newInt(value, least, most int64, unit string) *intValue {
	v := &intValue{min: least, max: most, unit: unit}
	v.n.Store(value)
	return v
}

func (v *intValue) Get() int64     { return v.n.Load() }
func (v *intValue) String() string { return strconv.FormatInt(v.n.Load(), 10) }
func (v *intValue) Type() string   { return v.unit }
func (v *intValue) Set(text string) error {
	n, ok := parseInt([]byte(text))
	if !ok {
		return fmt.Errorf("argument couldn't be parsed into an integer")
	}
	return v.set(n)
}

func (v *intValue) set(n int64) error {
	if n < v.min || n > v.max {
		return fmt.Errorf("argument must be between %d and %d inclusive", v.min, v.max)
	}
	v.n.Store(n)
	if v.onSet != nil {
		v.onSet(n)
	}
	return nil
}

// sizeValue is a number of bytes, read as redis.conf does: 1000, 1k = 1000, 1kb = 1024, m, mb, g, gb, any case.
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

// human is the value with the largest unit that divides it.
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

func (v *sizeValue) Set(text string) error {
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
		return v.set(int64(n) * u.bytes)
	}
	return fmt.Errorf("argument must be a memory value")
}

// yesNoValue is a switch, written yes or no as in redis.conf.
type yesNoValue struct {
	on    atomic.Bool
	check func(bool) error
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

func (v *yesNoValue) Set(text string) error {
	text = strings.ToLower(text)
	on := text == "yes"
	if !on && text != "no" {
		return fmt.Errorf("argument must be 'yes' or 'no'")
	}
	if v.check != nil {
		if err := v.check(on); err != nil {
			return err
		}
	}
	v.on.Store(on)
	return nil
}

// enumValue is one of a few words.
type enumValue struct {
	words []string
	index atomic.Int64
	check func(string) error
	onSet func(string)
}

func newEnum(words ...string) *enumValue { return &enumValue{words: words} }

func (v *enumValue) Get() string    { return v.words[v.index.Load()] }
func (v *enumValue) String() string { return v.Get() }
func (v *enumValue) Type() string   { return strings.Join(v.words, "|") }
func (v *enumValue) Set(text string) error {
	i := slices.Index(v.words, strings.ToLower(text))
	if i < 0 {
		return fmt.Errorf("argument(s) must be one of the following: %s", strings.Join(v.words, ", "))
	}
	if v.check != nil {
		if err := v.check(v.words[i]); err != nil {
			return err
		}
	}
	v.index.Store(int64(i))
	if v.onSet != nil {
		v.onSet(v.words[i])
	}
	return nil
}

// textValue is any text.
type textValue struct {
	text  atomic.Pointer[string]
	kind  string
	check func(string) error
}

func newText(value, kind string) *textValue {
	v := &textValue{kind: kind}
	v.text.Store(&value)
	return v
}

func (v *textValue) Get() string    { return *v.text.Load() }
func (v *textValue) String() string { return v.Get() }
func (v *textValue) Type() string   { return v.kind }
func (v *textValue) Set(text string) error {
	if v.check != nil {
		if err := v.check(text); err != nil {
			return err
		}
	}
	v.text.Store(&text)
	return nil
}

// listValue is words separated by blanks or commas; each Set replaces the words of the default, and adds to those of
// an earlier Set (a flag may be repeated).
type listValue struct {
	words []string
	isSet bool
}

func newList(words ...string) *listValue { return &listValue{words: words} }

func (v *listValue) Get() []string  { return v.words }
func (v *listValue) String() string { return strings.Join(v.words, " ") }
func (v *listValue) Type() string   { return "addresses" }
func (v *listValue) Set(text string) error {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	if len(words) == 0 {
		return fmt.Errorf("argument must name at least one address")
	}
	if v.isSet {
		words = append(v.words, words...)
	}
	v.words, v.isSet = words, true
	return nil
}
