package resp

import "celld/resp/stats"

import "celld/resp/command"

// newCommandTable returns the rows of all families. A table of which only names and rights are asked needs no server.
func newCommandTable(srv *Server) *command.Table {
	return command.NewTable(commandRows(srv), func() any { return &stats.Command{} })
}

// commandRows is the command table, by family.
func commandRows(srv *Server) []*command.Row {
	return []*command.Row{
		{Name: "cl.throttle", Arity: -1, Flags: command.Write | command.DenyOOM | command.Module | command.Fast | command.Decides, Keys: command.OneKey, Group: "module",
			Usage: "key max_burst count period [quantity]", Summary: "Takes from a key's limit if there is enough, and says whether there was.", Run: onSession(decide)},

		{Name: "gcra", Arity: -5, Flags: command.Write | command.DenyOOM | command.Fast | command.Decides, Keys: command.OneKey, Since: "8.8.0", Group: "rate_limit",
			Usage: "key max-burst tokens-per-period period [TOKENS count]", Summary: "Rate limit via GCRA (Generic Cell Rate Algorithm).", Run: onSession(decide)},

		{Name: "cl.take", Arity: -3, Flags: command.Write | command.DenyOOM | command.Fast | command.Blocking | command.Decides, Keys: command.OneKey, Group: command.GroupLimit,
			Usage: "key limit ... [COST n] [PEEK|UPTO|FORCE|RESERVE max|WAIT max] [LEASE ms] [BIND] [ID name] [US] [FULL]", Summary: "Takes from all given limits of a key, or from none.", Cost: "O(N) where N is the number of limits", Run: onSession(decide)},
		{Name: "cl.mtake", Arity: -4, Flags: command.Write | command.DenyOOM | command.Fast | command.Blocking | command.Decides, Keys: command.CountedPairs, Group: command.GroupLimit,
			Usage: "n key limit [key limit] ... [COST n] [PEEK|UPTO|FORCE|RESERVE max|WAIT max] [LEASE ms] [BIND] [ID name] [US]", Summary: "Takes from the limits of several keys at the same instant, or from none.", Cost: "O(N) where N is the number of pairs", Run: onSession(decide)},
		{Name: "cl.give", Arity: 4, Flags: command.Write | command.Fast | command.Decides, Keys: command.OneKey, Group: command.GroupLimit, Usage: "key limit n", Summary: "Gives back what was taken from a limit.", Run: onSession(cmdGive)},
		{Name: "cl.renew", Arity: 4, Flags: command.Write | command.Fast, Keys: command.OneKey, Group: command.GroupLimit, Usage: "key id ms", Summary: "Has a lease end so many ms from now.", Run: onSession(cmdRenew)},
		{Name: "cl.release", Arity: 3, Flags: command.Write | command.Fast, Keys: command.OneKey, Group: command.GroupLimit, Usage: "key id", Summary: "Ends a lease, and gives back what it holds.", Run: onSession(cmdRelease)},
		{Name: "cl.settle", Arity: 4, Flags: command.Write | command.Fast, Keys: command.OneKey, Group: command.GroupLimit, Usage: "key id n", Summary: "Ends a lease whose true cost was n.", Run: onSession(cmdSettle)},
		{Name: "cl.reset", Arity: -2, Flags: command.Write | command.Fast, Keys: command.AllKeys, Access: command.Writes, Group: command.GroupLimit, Usage: "key ...", Summary: "Resets all limits of keys, as DEL does.", Cost: "O(N) where N is the number of keys", Run: onSession(cmdDel)},
		{Name: "cl.policy", Arity: -2, Group: command.GroupLimit, Summary: "A container for commands on named limits.", Sub: policyRows()},
		{Name: "cl.rule", Arity: -2, Group: command.GroupLimit, Summary: "A container for rules that always allow or always deny keys.", Sub: ruleRows()},
		{Name: "cl.top", Arity: -1, Flags: command.Loading | command.Admin | command.NoScript, Group: command.GroupLimit, Usage: "[RESET|n] [policy]", Summary: "Returns the keys that are limited most, and how often they were.", Run: onSession(cmdTop)},
		{Name: "cl.stats", Arity: -1, Flags: command.Loading | command.Admin | command.NoScript, Group: command.GroupLimit, Usage: "[RESET|policy]", Summary: "Returns how calls were decided, for each policy. A call under several limits counts for the limit that binds only.", Cost: "O(N) where N is the number of policies", Run: onSession(cmdStats), Far: farOnSession(listAside(replyStats)), Aside: true},

		{Name: "ping", Arity: -1, Flags: command.Fast, Usage: "[message]", Summary: "Returns the server's liveliness response.", Since: "1.0.0", Group: "connection", Run: onSession(cmdPing)},
		{Name: "echo", Arity: 2, Flags: command.Loading | command.Fast, Usage: "message", Summary: "Returns the given string.", Since: "1.0.0", Group: "connection", Run: onSession(cmdEcho)},
		{Name: "quit", Arity: -1, Flags: command.AllowBusy | command.NoScript | command.Loading | command.Fast | command.NoAuth | command.Immediate, Summary: "Closes the connection.", Since: "1.0.0", Group: "connection", Run: onSession(cmdQuit)},
		{Name: "reset", Arity: 1, Flags: command.AllowBusy | command.Loading | command.Fast | command.NoAuth | command.Immediate | command.NoScript, Summary: "Resets the connection.", Since: "6.2.0", Group: "connection", Run: onSession(cmdReset)},
		{Name: "select", Arity: 2, Flags: command.Loading | command.Fast, Usage: "index", Summary: "Changes the selected database. There is one, 0.", Since: "1.0.0", Group: "connection", Run: onSession(cmdSelect)},
		{Name: "auth", Arity: -2, Flags: command.AllowBusy | command.Loading | command.Fast | command.NoAuth | command.NoScript, Usage: "[username] password", Summary: "Authenticates the connection.", Since: "1.0.0", Group: "connection", Run: onSession(cmdAuth)},
		{Name: "hello", Arity: -1, Flags: command.AllowBusy | command.Loading | command.Fast | command.NoAuth | command.NoScript, Usage: "[protover] [AUTH username password] [SETNAME clientname]", Summary: "Handshakes with the server.", Since: "6.0.0", Group: "connection", Run: onSession(cmdHello)},
		{Name: "client", Arity: -2, Flags: command.Loading, Summary: "A container for client connection commands.", Since: "2.4.0", Group: "connection", Sub: clientRows()},

		{Name: "acl", Arity: -2, Flags: command.Loading, Summary: "A container for commands on users and their rights.", Since: "6.0.0", Group: "server", Sub: aclRows()},
		{Name: "command", Arity: -1, Flags: command.Loading, Summary: "Returns detailed information about all commands.", Since: "2.8.13", Group: "server", Cost: "O(N) where N is the number of commands", Run: onSession(cmdCommand), Sub: commandCommandRows()},
		{Name: "info", Arity: -1, Most: command.ShortList, Flags: command.Loading, Usage: "[section ...]", Summary: "Returns information and statistics about the server.", Since: "1.0.0", Group: "server", Run: onSession(cmdInfo)},
		{Name: "config", Arity: -2, Flags: command.Loading, Summary: "A container for server configuration commands.", Since: "2.0.0", Group: "server", Sub: configRows()},
		{Name: "time", Arity: 1, Flags: command.Loading | command.Fast, Summary: "Returns the server time.", Since: "2.6.0", Group: "server", Run: onSession(cmdTime)},
		{Name: "dbsize", Arity: 1, Flags: command.Readonly, Summary: "Returns the number of keys.", Since: "1.0.0", Group: "server", Run: onSession(cmdDBSize), Far: farOnSession(farDBSize)},
		{Name: "flushdb", Arity: -1, Flags: command.Write, Usage: "[ASYNC|SYNC]", Summary: "Removes all keys.", Since: "1.0.0", Group: "server", Cost: "O(N) where N is the number of keys", Run: onSession(cmdFlush), Far: farOnSession(farFlush)},
		{Name: "flushall", Arity: -1, Flags: command.Write, Usage: "[ASYNC|SYNC]", Summary: "Removes all keys.", Since: "1.0.0", Group: "server", Cost: "O(N) where N is the number of keys", Run: onSession(cmdFlush), Far: farOnSession(farFlush)},
		{Name: "memory", Arity: -2, Summary: "A container for memory diagnostics commands.", Since: "4.0.0", Group: "server", Sub: memoryRows()},
		{Name: "module", Arity: -2, Summary: "A container for module commands.", Since: "4.0.0", Group: "server", Sub: moduleRows()},
		{Name: "monitor", Arity: 1, Flags: command.Loading | command.Admin | command.NoScript, Summary: "Listens for all requests received by the server in real-time.", Since: "1.0.0", Group: "server", Run: onSession(cmdMonitor)},
		{Name: "latency", Arity: -2, Summary: "A container for latency diagnostics commands.", Since: "2.8.13", Group: "server", Sub: latencyRows()},
		{Name: "slowlog", Arity: -2, Flags: command.Loading, Summary: "A container for slow log commands.", Since: "2.2.12", Group: "server", Sub: slowlogRows()},
		{Name: "role", Arity: 1, Flags: command.Loading | command.Fast | command.NoScript, Summary: "Returns the replication role: a master without replicas.", Since: "2.8.12", Group: "server", Run: onSession(cmdRole)},
		{Name: "shutdown", Arity: -1, Flags: command.AllowBusy | command.Loading | command.Admin | command.NoScript | command.NoMulti, Usage: "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]", Summary: "Stops the server.", Since: "1.0.0", Group: "server", Run: onSession(cmdShutdown)},
		{Name: "save", Arity: 1, Flags: command.Admin | command.NoScript | command.NoMulti, Summary: "Takes a snapshot while all clients wait.", Since: "1.0.0", Group: "server", Cost: "O(N) where N is the number of keys", Run: onSession(cmdSave)},
		{Name: "bgsave", Arity: -1, Flags: command.Admin | command.NoScript, Usage: "[SCHEDULE]", Summary: "Takes a snapshot in the background.", Since: "1.0.0", Group: "server", Run: onSession(cmdBgsave)},
		{Name: "bgrewriteaof", Arity: 1, Flags: command.Admin | command.NoScript, Summary: "Rewrites the append-only file in the background.", Since: "1.0.0", Group: "server", Run: onSession(cmdBgrewriteaof)},
		{Name: "lastsave", Arity: 1, Flags: command.Loading | command.Fast, Summary: "Returns the Unix time of the last good snapshot.", Since: "1.0.0", Group: "server", Run: onSession(cmdLastsave)},

		{Name: "get", Arity: 2, Flags: command.Readonly | command.Fast, Keys: command.OneKey, Usage: "key", Summary: "Returns a key's TAT, in Unix nanoseconds.", Since: "1.0.0", Group: "string", Run: onSession(cmdGet)},
		{Name: "strlen", Arity: 2, Flags: command.Readonly | command.Fast, Keys: command.OneKey, Access: command.Looks, Usage: "key", Summary: "Returns the length of a TAT's decimal digits.", Since: "2.2.0", Group: "string", Run: onSession(cmdStrlen)},
		{Name: "getrange", Arity: 4, Flags: command.Readonly, Keys: command.OneKey, Usage: "key start end", Summary: "Returns some of a TAT's decimal digits.", Since: "2.4.0", Group: "string", Run: onSession(cmdGetRange)},
		{Name: "set", Arity: -3, Flags: command.Write | command.DenyOOM, Keys: command.OneKey, Access: command.Sets, Usage: "key tat [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]", Summary: "Sets a key's TAT, in Unix nanoseconds.", Since: "1.0.0", Group: "string", Run: onSession(cmdSet)},
		{Name: "setnx", Arity: 3, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.OneKey, Access: command.Writes, Usage: "key tat", Summary: "Sets a key's TAT if there is no such key.", Since: "1.0.0", Group: "string", Run: onSession(cmdSetNX)},
		{Name: "getset", Arity: 3, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.OneKey, Usage: "key tat", Summary: "Sets a key's TAT, and returns the one before.", Since: "1.0.0", Group: "string", Run: onSession(cmdGetSet)},
		{Name: "getdel", Arity: 2, Flags: command.Write | command.Fast, Keys: command.OneKey, Usage: "key", Summary: "Returns a key's TAT, and deletes the key.", Since: "6.2.0", Group: "string", Run: onSession(cmdGetDel)},
		{Name: "getex", Arity: -2, Flags: command.Write | command.Fast, Keys: command.OneKey, Usage: "key [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST]", Summary: "Returns a key's TAT, and sets when the key expires.", Since: "6.2.0", Group: "string", Run: onSession(cmdGetEx)},
		{Name: "setex", Arity: 4, Flags: command.Write | command.DenyOOM, Keys: command.OneKey, Access: command.Writes, Usage: "key seconds tat", Summary: "Sets a key's TAT and how long the key lives.", Since: "2.0.0", Group: "string", Run: onSession(cmdSetEx)},
		{Name: "psetex", Arity: 4, Flags: command.Write | command.DenyOOM, Keys: command.OneKey, Access: command.Writes, Usage: "key milliseconds tat", Summary: "Sets a key's TAT and how long the key lives.", Since: "2.6.0", Group: "string", Run: onSession(cmdPSetEx)},

		{Name: "hgetall", Arity: 2, Flags: command.Readonly, Keys: command.OneKey, Usage: "key", Summary: "Returns the limits of a key, and what was used of each.", Since: "2.0.0", Group: "hash", Cost: "O(N) where N is the number of limits", Run: onSession(cmdHGetAll)},
		{Name: "hget", Arity: 3, Flags: command.Readonly | command.Fast, Keys: command.OneKey, Usage: "key field", Summary: "Returns what was used of one limit of a key.", Since: "2.0.0", Group: "hash", Cost: "O(N) where N is the number of limits", Run: onSession(cmdHGet)},
		{Name: "hscan", Arity: -3, Flags: command.Readonly, Keys: command.OneKey, Usage: "key cursor [MATCH pattern] [COUNT count]", Summary: "Returns the limits of a key, and what was used of each.", Since: "2.8.0", Group: "hash", Cost: "O(N) where N is the number of limits", Run: onSession(cmdHScan)},
		{Name: "hset", Arity: -4, Many: true, Flags: command.Write | command.DenyOOM | command.Fast, Keys: command.OneKey, Access: command.Writes, Usage: "key field value [field value] ...", Summary: "Sets limits of a key to states as HGETALL shows them.", Since: "2.0.0", Group: "hash", Cost: "O(N) where N is the number of limits", Run: onSession(cmdHSet)},
		{Name: "hlen", Arity: 2, Flags: command.Readonly | command.Fast, Keys: command.OneKey, Access: command.Looks, Usage: "key", Summary: "Returns the number of limits of a key.", Since: "2.0.0", Group: "hash", Run: onSession(cmdHLen)},

		{Name: "exists", Arity: -2, Flags: command.Readonly | command.Fast, Keys: command.AllKeys, Access: command.Looks, Usage: "key ...", Summary: "Counts the keys that exist.", Since: "1.0.0", Group: "generic", Cost: "O(N) where N is the number of keys to check", Run: onSession(cmdExists)},
		{Name: "type", Arity: 2, Flags: command.Readonly | command.Fast, Keys: command.OneKey, Access: command.Looks, Usage: "key", Summary: "Determines the type of value stored at a key.", Since: "1.0.0", Group: "generic", Run: onSession(cmdType)},
		{Name: "del", Arity: -2, Flags: command.Write, Keys: command.AllKeys, Access: command.Writes, Usage: "key ...", Summary: "Deletes keys, and so resets their limits.", Since: "1.0.0", Group: "generic", Cost: "O(N) where N is the number of keys", Run: onSession(cmdDel)},
		{Name: "unlink", Arity: -2, Flags: command.Write | command.Fast, Keys: command.AllKeys, Access: command.Writes, Usage: "key ...", Summary: "Deletes keys, as DEL does.", Since: "4.0.0", Group: "generic", Cost: "O(N) where N is the number of keys", Run: onSession(cmdDel)},
		{Name: "touch", Arity: -2, Flags: command.Readonly | command.Fast, Keys: command.AllKeys, Access: command.Looks, Usage: "key ...", Summary: "Marks keys as used, and counts those that exist.", Since: "3.2.1", Group: "generic", Cost: "O(N) where N is the number of keys", Run: onSession(cmdTouch)},
		{Name: "rename", Arity: 3, Flags: command.Write, Keys: command.TwoKeys, Access: command.Moves, Usage: "key newkey", Summary: "Renames a key; its state moves along.", Since: "1.0.0", Group: "generic", Run: onSession(cmdRename)},
		{Name: "renamenx", Arity: 3, Flags: command.Write | command.Fast, Keys: command.TwoKeys, Access: command.Moves, Usage: "key newkey", Summary: "Renames a key if no other has the new name.", Since: "1.0.0", Group: "generic", Run: onSession(cmdRenameNX)},
		{Name: "copy", Arity: -3, Flags: command.Write | command.DenyOOM, Keys: command.TwoKeys, Access: command.Copies, Usage: "source destination [DB destination-db] [REPLACE]", Summary: "Copies a key's state to another key.", Since: "6.2.0", Group: "generic", Cost: "O(N) where N is the number of limits", Run: onSession(cmdCopy)},
		{Name: "randomkey", Arity: 1, Flags: command.Readonly, Summary: "Returns a random key.", Since: "1.0.0", Group: "generic", Run: onSession(cmdRandomKey), Far: farOnSession(farRandomKey)},
		{Name: "keys", Arity: 2, Flags: command.Readonly, Usage: "pattern", Summary: "Returns all keys that match a pattern.", Since: "1.0.0", Group: "generic", Cost: "O(N) where N is the number of keys", Run: onSession(cmdKeys), Far: farOnSession(farKeys)},
		{Name: "scan", Arity: -2, Flags: command.Readonly, Usage: "cursor [MATCH pattern] [COUNT count] [TYPE type]", Summary: "Iterates over the keys.", Since: "2.8.0", Group: "generic", Cost: "O(1) a call, O(N) for all", Run: onSession(cmdScan), Far: farOnSession(farScan)},
		{Name: "object", Arity: -2, Summary: "A container for object introspection commands.", Since: "2.2.3", Group: "generic", Sub: objectRows()},

		{Name: "ttl", Arity: 2, Flags: command.Readonly | command.Fast, Keys: command.OneKey, Usage: "key", Summary: "Returns the seconds until a key expires.", Since: "1.0.0", Group: "generic", Run: onSession(cmdTTL)},
		{Name: "pttl", Arity: 2, Flags: command.Readonly | command.Fast, Keys: command.OneKey, Usage: "key", Summary: "Returns the milliseconds until a key expires.", Since: "2.6.0", Group: "generic", Run: onSession(cmdPTTL)},
		{Name: "expiretime", Arity: 2, Flags: command.Readonly | command.Fast, Keys: command.OneKey, Usage: "key", Summary: "Returns when a key expires, in Unix seconds.", Since: "7.0.0", Group: "generic", Run: onSession(cmdExpireTime)},
		{Name: "pexpiretime", Arity: 2, Flags: command.Readonly | command.Fast, Keys: command.OneKey, Usage: "key", Summary: "Returns when a key expires, in Unix milliseconds.", Since: "7.0.0", Group: "generic", Run: onSession(cmdPExpireTime)},
		{Name: "expire", Arity: -3, Flags: command.Write | command.Fast, Keys: command.OneKey, Access: command.Writes, Usage: "key seconds [NX|XX|GT|LT]", Summary: "Sets how long a key lives, at most as long as its TAT.", Since: "1.0.0", Group: "generic", Run: onSession(cmdExpire)},
		{Name: "pexpire", Arity: -3, Flags: command.Write | command.Fast, Keys: command.OneKey, Access: command.Writes, Usage: "key milliseconds [NX|XX|GT|LT]", Summary: "Sets how long a key lives, at most as long as its TAT.", Since: "2.6.0", Group: "generic", Run: onSession(cmdPExpire)},
		{Name: "expireat", Arity: -3, Flags: command.Write | command.Fast, Keys: command.OneKey, Access: command.Writes, Usage: "key unix-time-seconds [NX|XX|GT|LT]", Summary: "Sets when a key expires, at the latest with its TAT.", Since: "1.2.0", Group: "generic", Run: onSession(cmdExpireAt)},
		{Name: "pexpireat", Arity: -3, Flags: command.Write | command.Fast, Keys: command.OneKey, Access: command.Writes, Usage: "key unix-time-milliseconds [NX|XX|GT|LT]", Summary: "Sets when a key expires, at the latest with its TAT.", Since: "2.6.0", Group: "generic", Run: onSession(cmdPExpireAt)},
		{Name: "persist", Arity: 2, Flags: command.Write | command.Fast, Keys: command.OneKey, Access: command.Writes, Usage: "key", Summary: "Removes a key's own expiry; it still ends with its TAT.", Since: "2.2.0", Group: "generic", Run: onSession(cmdPersist)},

		{Name: "eval", Arity: -3, Script: 1, Flags: command.NoScript | command.SkipMonitor, Keys: command.ScriptKeys, Usage: "script numkeys [key ...] [arg ...]", Summary: "Runs a Lua script.", Since: "2.6.0", Group: "scripting", Cost: "Depends on the script", Run: onSession(cmdEval)},
		{Name: "eval_ro", Arity: -3, Script: 1, Flags: command.Readonly | command.NoScript | command.SkipMonitor, Keys: command.ScriptKeys, Usage: "script numkeys [key ...] [arg ...]", Summary: "Runs a Lua script that changes nothing.", Since: "7.0.0", Group: "scripting", Cost: "Depends on the script", Run: onSession(cmdEvalRO)},
		{Name: "evalsha", Arity: -3, Flags: command.NoScript | command.SkipMonitor, Keys: command.ScriptKeys, Usage: "sha1 numkeys [key ...] [arg ...]", Summary: "Runs a Lua script that is kept.", Since: "2.6.0", Group: "scripting", Cost: "Depends on the script", Run: onSession(cmdEvalSHA)},
		{Name: "evalsha_ro", Arity: -3, Flags: command.Readonly | command.NoScript | command.SkipMonitor, Keys: command.ScriptKeys, Usage: "sha1 numkeys [key ...] [arg ...]", Summary: "Runs a Lua script that is kept, and changes nothing.", Since: "7.0.0", Group: "scripting", Cost: "Depends on the script", Run: onSession(cmdEvalSHARO)},
		{Name: "script", Arity: -2, Summary: "A container for Lua scripts management commands.", Since: "2.6.0", Group: "scripting", Sub: scriptRows()},

		{Name: "multi", Arity: 1, Flags: command.AllowBusy | command.Loading | command.Fast | command.Immediate | command.NoScript, Summary: "Starts a transaction.", Since: "1.2.0", Group: "transactions", Run: onSession(cmdMulti)},
		{Name: "exec", Arity: 1, Flags: command.Loading | command.Immediate | command.SkipSlowlog | command.NoScript, Summary: "Executes all commands in a transaction.", Since: "1.2.0", Group: "transactions", Cost: "Depends on commands in the transaction", Run: onSession(cmdExec)},
		{Name: "discard", Arity: 1, Flags: command.AllowBusy | command.Loading | command.Fast | command.Immediate | command.NoScript, Summary: "Discards a transaction.", Since: "2.0.0", Group: "transactions", Run: onSession(cmdDiscard)},
		{Name: "watch", Arity: -2, Flags: command.AllowBusy | command.Loading | command.Fast | command.Immediate | command.NoScript, Keys: command.AllKeys, Access: command.Looks, Usage: "key ...", Summary: "Makes the next EXEC depend on keys that do not change.", Since: "2.2.0", Group: "transactions", Cost: "O(1) for every key", Run: onSession(cmdWatch)},
		{Name: "unwatch", Arity: 1, Flags: command.AllowBusy | command.Loading | command.Fast | command.NoScript, Summary: "Forgets about watched keys.", Since: "2.2.0", Group: "transactions", Run: onSession(cmdUnwatch)},
	}
}
