package command

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"celld/resp/wire"
)

// Reply is the answer to a call. Its methods append to Out in the protocol of the client.
type Reply struct {
	Out   []byte
	RESP3 bool
}

// OK appends the status OK.
func (r *Reply) OK() { r.Out = append(r.Out, "+OK\r\n"...) }

// Status appends a simple string, which has one line.
func (r *Reply) Status(text string) { r.Out = wire.AppendStatus(r.Out, text) }

// Int appends an integer.
func (r *Reply) Int(n int64) { r.Out = wire.AppendInt(r.Out, n) }

// Bool appends 1 or 0, as Redis's commands do in both protocols.
func (r *Reply) Bool(yes bool) { r.Out = wire.AppendBool(r.Out, yes, false) }

// Bulk appends bytes.
func (r *Reply) Bulk(b []byte) { r.Out = wire.AppendBulk(r.Out, b) }

// String appends a text as bytes.
func (r *Reply) String(text string) { r.Out = wire.AppendString(r.Out, text) }

// Array begins an array of n elements, Map a map of n pairs and Set a set of n elements. The caller appends these.
func (r *Reply) Array(n int) { r.Out = wire.AppendArray(r.Out, n) }

// Map begins a map: see Array.
func (r *Reply) Map(n int) { r.Out = wire.AppendMap(r.Out, n, r.RESP3) }

// Set begins a set: see Array.
func (r *Reply) Set(n int) { r.Out = wire.AppendSet(r.Out, n, r.RESP3) }

// Null appends the null of the protocol.
func (r *Reply) Null() { r.Out = wire.AppendNull(r.Out, r.RESP3) }

// NullArray is what EXEC answers when a watched key changed.
func (r *Reply) NullArray() { r.Out = wire.AppendNullArray(r.Out, r.RESP3) }

// Text appends text for people (INFO, CLIENT LIST), which a tool prints as it is.
func (r *Reply) Text(text string) { r.Out = wire.AppendVerbatim(r.Out, "txt", text, r.RESP3) }

// Double appends a number that need not be whole.
func (r *Reply) Double(f float64) {
	r.Out = wire.AppendDouble(r.Out, strconv.FormatFloat(f, 'g', -1, 64), r.RESP3)
}

// Strings appends an array of texts.
func (r *Reply) Strings(list []string) {
	r.Out = wire.AppendBulks(wire.AppendArray(r.Out, len(list)), list...)
}

// StringSet appends a set of texts.
func (r *Reply) StringSet(list []string) {
	r.Set(len(list))
	r.Out = wire.AppendBulks(r.Out, list...)
}

// Statuses appends a set of words, such as COMMAND INFO's flags.
func (r *Reply) Statuses(words []string) {
	r.Set(len(words))
	for _, word := range words {
		r.Status(word)
	}
}

// Invalidate announces keys as changed. In RESP2, which has no message for that, it says nothing, as in Redis.
func (r *Reply) Invalidate(keys [][]byte) {
	if len(keys) == 0 || !r.RESP3 {
		return
	}
	keys = slices.CompactFunc(keys, bytes.Equal) // PTTL k and GET k, in a transaction
	r.Out = wire.AppendPush(r.Out, 2)
	r.String("invalidate")
	r.Array(len(keys))
	for _, key := range keys {
		r.Bulk(key)
	}
}

// Pair appends a field of a map, as Field and Pairs do. The caller has written the map's size.
func (r *Reply) Pair(name, value string) {
	r.String(name)
	r.String(value)
}

// Field appends a field that is a number: see Pair.
func (r *Reply) Field(name string, n int64) {
	r.String(name)
	r.Int(n)
}

// Pairs appends fields: see Pair.
func (r *Reply) Pairs(pairs [][2]string) {
	for _, p := range pairs {
		r.Pair(p[0], p[1])
	}
}

// Error appends an error, which may be a format: one of errors.go, or "%s".
func (r *Reply) Error(format string, args ...any) {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	r.Out = wire.AppendError(r.Out, format)
}
