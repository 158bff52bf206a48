package keys

import (
	"errors"

	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/store"
)

// A string is an integer. Redis would store any bytes; celld refuses any other, and changes nothing.

// digits returns a key's integer as GET shows it, "" where there is no key. It answers an error, and ok is false, where the key holds
// no string.
func digits(c *command.Call) (text string, ok bool) {
	st, found := c.Keys().Get(c.Args[1], c.Access())
	switch {
	case !found:
		return "", true
	case st.HoldsLimits:
		c.Error(command.ErrWrongType)
		return "", false
	}
	return string(st.AppendInteger(nil)), true
}

func get(c *command.Call) {
	switch text, ok := digits(c); {
	case !ok:
	case text == "":
		c.Null()
	default:
		c.String(text)
	}
}

// strlen exists because redis-cli --bigkeys calls it for every string.
func strlen(c *command.Call) {
	if text, ok := digits(c); ok {
		c.Int(int64(len(text)))
	}
}

// getRange exists because RedisInsight shows strings by it.
func getRange(c *command.Call) {
	start, ok := argument.ParseInt(c.Args[2])
	end, endOK := argument.ParseInt(c.Args[3])
	if !ok || !endOK {
		c.Error(argument.ErrNotInteger)
		return
	}
	text, ok := digits(c)
	if !ok {
		return
	}
	length := int64(len(text))
	if start < 0 && end < 0 && start > end { // Redis checks this before it adds the length
		c.String("")
		return
	}
	if start < 0 {
		start = max(0, start+length)
	}
	if end < 0 {
		end = max(0, end+length)
	}
	if end = min(end, length-1); start > end {
		c.String("")
		return
	}
	c.String(text[start : end+1])
}

var (
	setWords = argument.Options{Flags: []string{"NX", "XX", "GET", "KEEPTTL"}, Valued: []string{"EX", "PX", "EXAT", "PXAT"},
		OneOf: [][]string{{"NX", "XX"}, {"KEEPTTL", "EX", "PX", "EXAT", "PXAT"}}, Refusal: argument.ErrSyntax}
	getExWords = argument.Options{Flags: []string{"PERSIST"}, Valued: []string{"EX", "PX", "EXAT", "PXAT"},
		OneOf: [][]string{{"PERSIST", "EX", "PX", "EXAT", "PXAT"}}, Refusal: argument.ErrSyntax}
)

// setOptions are what may follow SET key value and GETEX key.
type setOptions struct {
	nx, xx, get, keepTTL bool // of SET
	persist              bool // of GETEX
	expiry               argument.Expiry
}

func (o *setOptions) set(option string, value []byte) (text string) {
	switch option {
	case "NX":
		o.nx = true
	case "XX":
		o.xx = true
	case "GET":
		o.get = true
	case "KEEPTTL":
		o.keepTTL = true
	case "PERSIST":
		o.persist = true
	default:
		o.expiry = argument.Expiry{Unit: option, Value: value}
	}
	return ""
}

func set(c *command.Call) {
	var o setOptions
	if text := setWords.Read(c.Args[3:], o.set); text != "" {
		c.Error("%s", text)
		return
	}
	setTo(c, c.Args[2], o, "set")
}

func getSet(c *command.Call) { setTo(c, c.Args[2], setOptions{get: true}, "set") }

func setEx(c *command.Call) {
	setTo(c, c.Args[3], setOptions{expiry: argument.Expiry{Unit: "EX", Value: c.Args[2]}}, "setex")
}
func psetEx(c *command.Call) {
	setTo(c, c.Args[3], setOptions{expiry: argument.Expiry{Unit: "PX", Value: c.Args[2]}}, "psetex")
}

// valueOf is what a command of this name stores, or the text of an error.
func (o *setOptions) valueOf(value []byte, name string, wallNS int64) (v store.Value, text string) {
	expiryNS := store.NoExpiry
	if o.expiry.Unit != "" {
		if expiryNS, text = o.expiry.AtNS(name, wallNS); text != "" {
			return v, text
		}
	}
	v, ok := store.ParseInteger(value, wallNS)
	if !ok {
		return v, argument.ErrNotInteger
	}
	v.ExpiryNS = expiryNS
	return v, ""
}

// setTo stores an integer under the key.
func setTo(c *command.Call, value []byte, o setOptions, name string) {
	next, text := o.valueOf(value, name, c.WallNS())
	if text == argument.ErrNotInteger && o.nx {
		text = errNoLock
	}
	if text != "" {
		c.Error("%s", text)
		return
	}
	var old store.Value
	existed, stored, wrongType := false, false, false
	err := c.Keys().Update(c.Args[1], c.Access(), func(current store.Value, ok bool) (store.Value, bool) {
		old, existed, stored = current, ok, false // the store calls this again after it has made room
		wrongType = o.get && ok && current.HoldsLimits
		if o.nx && ok || o.xx && !ok || wrongType {
			return current, false
		}
		if o.keepTTL && ok {
			next.ExpiryNS = current.Expiry()
		}
		stored = true
		return next, true
	})
	switch {
	case errors.Is(err, store.ErrFull):
		c.Fail(err)
	case wrongType:
		c.Error(command.ErrWrongType)
	case o.get && existed:
		c.String(string(old.AppendInteger(nil)))
	case o.get || !stored:
		c.Null()
	default:
		c.OK()
	}
}

func setNX(c *command.Call) {
	value, ok := store.ParseInteger(c.Args[2], c.WallNS())
	if !ok {
		c.Error(errNoLock)
		return
	}
	value.ExpiryNS = store.NoExpiry
	stored := false
	err := c.Keys().Update(c.Args[1], c.Access(), func(current store.Value, ok bool) (store.Value, bool) {
		if stored = !ok; ok {
			return current, false
		}
		return value, true
	})
	if errors.Is(err, store.ErrFull) {
		c.Fail(err)
		return
	}
	c.Bool(stored)
}

func getDel(c *command.Call) {
	exchange(c, func(store.Value) (store.Value, bool) { return store.Value{}, true }) // deletes the key
}

// getEx reports a wrong expiry only if the key holds a string, as Redis does.
func getEx(c *command.Call) {
	var o setOptions
	if text := getExWords.Read(c.Args[2:], o.set); text != "" {
		c.Error("%s", text)
		return
	}
	atNS, text := store.NoExpiry, ""
	if o.expiry.Unit != "" {
		atNS, text = o.expiry.AtNS("getex", c.WallNS())
	}
	mark := len(c.Out)
	found := exchange(c, func(current store.Value) (store.Value, bool) {
		if text != "" || o.expiry.Unit == "" && (!o.persist || current.ExpiryNS == store.NoExpiry) {
			return current, false
		}
		current.ExpiryNS = atNS
		return current, true
	})
	if found && text != "" {
		c.Out = c.Out[:mark]
		c.Error("%s", text)
	}
}

// exchange answers with the key's integer, and applies fn to the key. It returns whether the key held a string.
func exchange(c *command.Call, fn func(store.Value) (store.Value, bool)) (found bool) {
	var old store.Value
	there := false
	change(c, func(current store.Value) (store.Value, bool) {
		old, there = current, true
		if current.HoldsLimits {
			return current, false
		}
		return fn(current)
	})
	switch {
	case !there:
		c.Null()
	case old.HoldsLimits:
		c.Error(command.ErrWrongType)
	default:
		c.String(string(old.AppendInteger(nil)))
		return true
	}
	return false
}
