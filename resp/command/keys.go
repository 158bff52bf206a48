package command

import (
	"celld/cell"
	"celld/store"
)

// Keys are what a call may use of the keys: all of them in memory, and with an engine those that the call names, in a transaction that
// is stored when the handler has run.
type Keys interface {
	Get(key []byte, a store.Access) (store.Value, bool)
	Update(key []byte, a store.Access, fn func(old store.Value, ok bool) (store.Value, store.Action)) error
	Delete(key []byte, nowNS int64) bool
	Rename(from, to []byte, a store.Access) (there bool, err error)
	RenameNew(from, to []byte, a store.Access) (there, moved bool, err error)
	Copy(from, to []byte, replace bool, a store.Access) (copied bool, err error)
	IdleNS(key []byte, nowNS int64) (int64, bool)
	KeyBytes(key []byte, nowNS int64) (int64, bool)

	// Limits calls fn for each limit of a key. ParseField and PutFields write them as HSET has them.
	Limits(key []byte, a store.Access, fn func(*store.LimitState)) (bool, error)
	ParseField(name, text string) (store.Field, error)
	PutFields(key []byte, fields store.Fields, apart bool, a store.Access) (added int, err error)

	// GiveSome gives back a part of n. There is more to do where it reports so.
	GiveSome(key []byte, l *cell.Limit, policy uint32, n int64, a store.Access) (given int64, more bool, err error)

	// All keys, where none is named.
	Len(nowNS int64) int
	Random(nowNS int64) (string, bool)
	Scan(cursor uint64, count int, nowNS int64, fn func(key string, st store.Value)) (next uint64)
	Flush()

	WallNS(nowNS int64) int64
}
