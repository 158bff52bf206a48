package keys

import (
	"celld/resp/command"
	"celld/resp/command/spec"
)

// Options are what the commands over all keys need of the server.
type Options struct {
	Space func() Space // all keys of an engine; nil, or what returns nil: the keys are in the table
}

// AllRows are the commands that count and remove all keys, which Redis lists among those on the server.
func AllRows(o Options) []*command.Row {
	a := all{o}
	return []*command.Row{
		{Name: "dbsize", Arity: 1, Flags: spec.Readonly, Summary: "Returns the number of keys.", Since: "1.0.0", Group: "server", Run: a.size, Overall: true},
		{Name: "flushdb", Arity: -1, Flags: spec.Write | spec.Audited, Usage: "[ASYNC|SYNC]", Summary: "Removes all keys.", Since: "1.0.0", Group: "server", Cost: "O(N) where N is the number of keys", Run: a.flush, Overall: true},
		{Name: "flushall", Arity: -1, Flags: spec.Write | spec.Audited, Usage: "[ASYNC|SYNC]", Summary: "Removes all keys.", Since: "1.0.0", Group: "server", Cost: "O(N) where N is the number of keys", Run: a.flush, Overall: true},
	}
}

// Rows are the other commands of the family.
func Rows(o Options) []*command.Row {
	a := all{o}
	return []*command.Row{
		{Name: "get", Arity: 2, Flags: spec.Readonly | spec.Fast, Keys: spec.OneKey, Usage: "key", Summary: "Returns the integer of a key: a TAT, in Unix nanoseconds, or a count.", Since: "1.0.0", Group: "string", Run: get},
		{Name: "strlen", Arity: 2, Flags: spec.Readonly | spec.Fast, Keys: spec.OneKey, Access: spec.Looks, Usage: "key", Summary: "Returns how many characters the integer of a key has.", Since: "2.2.0", Group: "string", Run: strlen},
		{Name: "getrange", Arity: 4, Flags: spec.Readonly, Keys: spec.OneKey, Usage: "key start end", Summary: "Returns some characters of the integer of a key.", Since: "2.4.0", Group: "string", Run: getRange},
		{Name: "set", Arity: -3, Flags: spec.Write | spec.DenyOOM, Keys: spec.OneKey, Access: spec.Sets, Usage: "key integer [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]", Summary: "Sets the integer of a key: a TAT, in Unix nanoseconds, or a count.", Since: "1.0.0", Group: "string", Run: set},
		{Name: "setnx", Arity: 3, Flags: spec.Write | spec.DenyOOM | spec.Fast, Keys: spec.OneKey, Access: spec.Writes, Usage: "key integer", Summary: "Sets the integer of a key if there is no such key.", Since: "1.0.0", Group: "string", Run: setNX},
		{Name: "getset", Arity: 3, Flags: spec.Write | spec.DenyOOM | spec.Fast, Keys: spec.OneKey, Usage: "key integer", Summary: "Sets the integer of a key, and returns the one before.", Since: "1.0.0", Group: "string", Run: getSet},
		{Name: "getdel", Arity: 2, Flags: spec.Write | spec.Fast, Keys: spec.OneKey, Usage: "key", Summary: "Returns the integer of a key, and deletes the key.", Since: "6.2.0", Group: "string", Run: getDel},
		{Name: "getex", Arity: -2, Flags: spec.Write | spec.Fast, Keys: spec.OneKey, Usage: "key [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST]", Summary: "Returns the integer of a key, and sets when the key expires.", Since: "6.2.0", Group: "string", Run: getEx},
		{Name: "setex", Arity: 4, Flags: spec.Write | spec.DenyOOM, Keys: spec.OneKey, Access: spec.Writes, Usage: "key seconds integer", Summary: "Sets the integer of a key and how long the key lives.", Since: "2.0.0", Group: "string", Run: setEx},
		{Name: "psetex", Arity: 4, Flags: spec.Write | spec.DenyOOM, Keys: spec.OneKey, Access: spec.Writes, Usage: "key milliseconds integer", Summary: "Sets the integer of a key and how long the key lives.", Since: "2.6.0", Group: "string", Run: psetEx},

		{Name: "hgetall", Arity: 2, Flags: spec.Readonly, Keys: spec.OneKey, Usage: "key", Summary: "Returns the limits of a key, and what was used of each.", Since: "2.0.0", Group: "hash", Cost: "O(N) where N is the number of limits", Run: hgetall},
		{Name: "hget", Arity: 3, Flags: spec.Readonly | spec.Fast, Keys: spec.OneKey, Usage: "key field", Summary: "Returns what was used of one limit of a key.", Since: "2.0.0", Group: "hash", Cost: "O(N) where N is the number of limits", Run: hget},
		{Name: "hscan", Arity: -3, Flags: spec.Readonly, Keys: spec.OneKey, Usage: "key cursor [MATCH pattern] [COUNT count]", Summary: "Returns the limits of a key, and what was used of each.", Since: "2.8.0", Group: "hash", Cost: "O(N) where N is the number of limits", Run: hscan},
		{Name: "hset", Arity: -4, Many: true, Flags: spec.Write | spec.DenyOOM | spec.Fast, Keys: spec.OneKey, Access: spec.Writes, Usage: "key field value [field value] ...", Summary: "Sets limits of a key to states as HGETALL shows them.", Since: "2.0.0", Group: "hash", Cost: "O(N) where N is the number of limits", Run: hset},
		{Name: "hlen", Arity: 2, Flags: spec.Readonly | spec.Fast, Keys: spec.OneKey, Access: spec.Looks, Usage: "key", Summary: "Returns the number of limits of a key.", Since: "2.0.0", Group: "hash", Run: hlen},

		{Name: "exists", Arity: -2, Flags: spec.Readonly | spec.Fast, Keys: spec.AllKeys, Access: spec.Looks, Usage: "key ...", Summary: "Counts the keys that exist.", Since: "1.0.0", Group: "generic", Cost: "O(N) where N is the number of keys to check", Run: exists},
		{Name: "type", Arity: 2, Flags: spec.Readonly | spec.Fast, Keys: spec.OneKey, Access: spec.Looks, Usage: "key", Summary: "Determines the type of value stored at a key.", Since: "1.0.0", Group: "generic", Run: typeOf},
		{Name: "del", Arity: -2, Flags: spec.Write, Keys: spec.AllKeys, Access: spec.Writes, Usage: "key ...", Summary: "Deletes keys, and so resets their limits.", Since: "1.0.0", Group: "generic", Cost: "O(N) where N is the number of keys", Run: (*command.Call).DeleteKeys},
		{Name: "unlink", Arity: -2, Flags: spec.Write | spec.Fast, Keys: spec.AllKeys, Access: spec.Writes, Usage: "key ...", Summary: "Deletes keys, as DEL does.", Since: "4.0.0", Group: "generic", Cost: "O(N) where N is the number of keys", Run: (*command.Call).DeleteKeys},
		{Name: "touch", Arity: -2, Flags: spec.Readonly | spec.Fast, Keys: spec.AllKeys, Access: spec.Looks, Usage: "key ...", Summary: "Marks keys as used, and counts those that exist.", Since: "3.2.1", Group: "generic", Cost: "O(N) where N is the number of keys", Run: touch},
		{Name: "rename", Arity: 3, Flags: spec.Write, Keys: spec.TwoKeys, Access: spec.Moves, Usage: "key newkey", Summary: "Renames a key; its state moves along.", Since: "1.0.0", Group: "generic", Run: rename},
		{Name: "renamenx", Arity: 3, Flags: spec.Write | spec.Fast, Keys: spec.TwoKeys, Access: spec.Moves, Usage: "key newkey", Summary: "Renames a key if no other has the new name.", Since: "1.0.0", Group: "generic", Run: renameNX},
		{Name: "copy", Arity: -3, Flags: spec.Write | spec.DenyOOM, Keys: spec.TwoKeys, Access: spec.Copies, Usage: "source destination [DB destination-db] [REPLACE]", Summary: "Copies a key's state to another key.", Since: "6.2.0", Group: "generic", Cost: "O(N) where N is the number of limits", Run: copyKey},

		{Name: "randomkey", Arity: 1, Flags: spec.Readonly, Summary: "Returns a random key.", Since: "1.0.0", Group: "generic", Run: a.randomKey, Overall: true},
		{Name: "keys", Arity: 2, Flags: spec.Readonly, Usage: "pattern", Summary: "Returns all keys that match a pattern.", Since: "1.0.0", Group: "generic", Cost: "O(N) where N is the number of keys", Run: a.keys, Overall: true},
		{Name: "scan", Arity: -2, Flags: spec.Readonly, Usage: "cursor [MATCH pattern] [COUNT count] [TYPE type]", Summary: "Iterates over the keys.", Since: "2.8.0", Group: "generic", Cost: "O(1) a call, O(N) for all", Run: a.scan, Overall: true},
		{Name: "object", Arity: -2, Summary: "A container for object introspection commands.", Since: "2.2.3", Group: "generic", Sub: objectRows()},

		{Name: "ttl", Arity: 2, Flags: spec.Readonly | spec.Fast, Keys: spec.OneKey, Usage: "key", Summary: "Returns the seconds until a key expires.", Since: "1.0.0", Group: "generic", Run: ttl},
		{Name: "pttl", Arity: 2, Flags: spec.Readonly | spec.Fast, Keys: spec.OneKey, Usage: "key", Summary: "Returns the milliseconds until a key expires.", Since: "2.6.0", Group: "generic", Run: pttl},
		{Name: "expiretime", Arity: 2, Flags: spec.Readonly | spec.Fast, Keys: spec.OneKey, Usage: "key", Summary: "Returns when a key expires, in Unix seconds.", Since: "7.0.0", Group: "generic", Run: expireTime},
		{Name: "pexpiretime", Arity: 2, Flags: spec.Readonly | spec.Fast, Keys: spec.OneKey, Usage: "key", Summary: "Returns when a key expires, in Unix milliseconds.", Since: "7.0.0", Group: "generic", Run: pexpireTime},
		{Name: "expire", Arity: -3, Flags: spec.Write | spec.Fast, Keys: spec.OneKey, Access: spec.Writes, Usage: "key seconds [NX|XX|GT|LT]", Summary: "Sets how long a key lives. A TAT ends at its time at the latest.", Since: "1.0.0", Group: "generic", Run: expire},
		{Name: "pexpire", Arity: -3, Flags: spec.Write | spec.Fast, Keys: spec.OneKey, Access: spec.Writes, Usage: "key milliseconds [NX|XX|GT|LT]", Summary: "Sets how long a key lives. A TAT ends at its time at the latest.", Since: "2.6.0", Group: "generic", Run: pexpire},
		{Name: "expireat", Arity: -3, Flags: spec.Write | spec.Fast, Keys: spec.OneKey, Access: spec.Writes, Usage: "key unix-time-seconds [NX|XX|GT|LT]", Summary: "Sets when a key expires. A TAT ends at its time at the latest.", Since: "1.2.0", Group: "generic", Run: expireAt},
		{Name: "pexpireat", Arity: -3, Flags: spec.Write | spec.Fast, Keys: spec.OneKey, Access: spec.Writes, Usage: "key unix-time-milliseconds [NX|XX|GT|LT]", Summary: "Sets when a key expires. A TAT ends at its time at the latest.", Since: "2.6.0", Group: "generic", Run: pexpireAt},
		{Name: "persist", Arity: 2, Flags: spec.Write | spec.Fast, Keys: spec.OneKey, Access: spec.Writes, Usage: "key", Summary: "Removes a key's own expiry. A TAT still ends at its time.", Since: "2.2.0", Group: "generic", Run: persist},
	}
}

func objectRows() []*command.Row {
	return []*command.Row{
		{Name: "encoding", Arity: 3, Flags: spec.Readonly, Keys: spec.SubKey, Access: spec.Looks, Usage: "key", Summary: "Returns the encoding of a key's value.", Since: "2.2.3", Group: "generic", Run: objectEncoding},
		{Name: "freq", Arity: 3, Flags: spec.Readonly, Keys: spec.SubKey, Access: spec.Looks, Usage: "key", Summary: "Returns an error: celld does not count uses.", Since: "4.0.0", Group: "generic", Run: objectFreq},
		{Name: "idletime", Arity: 3, Flags: spec.Readonly, Keys: spec.SubKey, Access: spec.Looks, Usage: "key", Summary: "Returns the seconds since a key was used.", Since: "2.2.3", Group: "generic", Run: objectIdleTime},
		{Name: "refcount", Arity: 3, Flags: spec.Readonly, Keys: spec.SubKey, Access: spec.Looks, Usage: "key", Summary: "Returns 1 for a key that exists.", Since: "2.2.3", Group: "generic", Run: objectRefCount},
	}
}
