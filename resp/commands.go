package resp

const groupLimit = "limits"

// commandRows is the command table, by family.
func commandRows() []*command {
	return []*command{
		{name: "cl.throttle", arity: -1, flags: write | denyOOM | module | fast, keys: oneKey, group: "module",
			usage: "key max_burst count period [quantity]", summary: "Takes from a key's rate limit, and says whether that is allowed.", run: cmdThrottle},

		{name: "cl.take", arity: -3, flags: write | denyOOM | fast, keys: oneKey, group: groupLimit,
			usage: "key limit ... [COST n] [PEEK|UPTO|FORCE] [US] [FULL]", summary: "Takes from all of some limits of a key, or from none.", cost: "O(N) where N is the number of limits", run: cmdTake},
		{name: "cl.mtake", arity: -4, flags: write | denyOOM | fast, keys: countedPairs, group: groupLimit,
			usage: "n key limit [key limit] ... [COST n] [PEEK|UPTO|FORCE] [US]", summary: "Takes from limits of several keys at one instant, or from none.", cost: "O(N) where N is the number of pairs", run: cmdMultiTake},
		{name: "cl.give", arity: 4, flags: write | fast, keys: oneKey, group: groupLimit, usage: "key limit n", summary: "Gives back what was taken from a limit.", run: cmdGive},
		{name: "cl.reset", arity: -2, flags: write | fast, keys: allKeys, group: groupLimit, usage: "key ...", summary: "Resets all limits of keys, as DEL does.", cost: "O(N) where N is the number of keys", run: cmdDel},
		{name: "cl.policy", arity: -2, group: groupLimit, summary: "A container for limits that are kept by name.", sub: policyRows()},
		{name: "cl.rule", arity: -2, group: groupLimit, summary: "A container for keys that are let through or kept out.", sub: ruleRows()},

		{name: "ping", arity: -1, flags: fast, usage: "[message]", summary: "Returns the server's liveliness response.", since: "1.0.0", group: "connection", run: cmdPing},
		{name: "echo", arity: 2, flags: loading | fast, usage: "message", summary: "Returns the given string.", since: "1.0.0", group: "connection", run: cmdEcho},
		{name: "quit", arity: -1, flags: loading | fast | noAuth | immediate, summary: "Closes the connection.", since: "1.0.0", group: "connection", run: cmdQuit},
		{name: "reset", arity: 1, flags: loading | fast | noAuth | immediate | noScript, summary: "Resets the connection.", since: "6.2.0", group: "connection", run: cmdReset},
		{name: "select", arity: 2, flags: loading | fast, usage: "index", summary: "Changes the selected database. There is one, 0.", since: "1.0.0", group: "connection", run: cmdSelect},
		{name: "auth", arity: -2, flags: loading | fast | noAuth | noScript, usage: "[username] password", summary: "Authenticates the connection.", since: "1.0.0", group: "connection", run: cmdAuth},
		{name: "hello", arity: -1, flags: loading | fast | noAuth | noScript, usage: "[protover] [AUTH username password] [SETNAME clientname]", summary: "Handshakes with the server.", since: "6.0.0", group: "connection", run: cmdHello},
		{name: "client", arity: -2, flags: loading, summary: "A container for client connection commands.", since: "2.4.0", group: "connection", sub: clientRows()},

		{name: "command", arity: -1, flags: loading, summary: "Returns detailed information about all commands.", since: "2.8.13", group: "server", cost: "O(N) where N is the number of commands", run: cmdCommand, sub: commandCommandRows()},
		{name: "info", arity: -1, flags: loading, usage: "[section ...]", summary: "Returns information and statistics about the server.", since: "1.0.0", group: "server", run: cmdInfo},
		{name: "config", arity: -2, flags: loading, summary: "A container for server configuration commands.", since: "2.0.0", group: "server", sub: configRows()},
		{name: "time", arity: 1, flags: loading | fast, summary: "Returns the server time.", since: "2.6.0", group: "server", run: cmdTime},
		{name: "dbsize", arity: 1, flags: readonly, summary: "Returns the number of keys.", since: "1.0.0", group: "server", run: cmdDBSize},
		{name: "flushdb", arity: -1, flags: write, usage: "[ASYNC|SYNC]", summary: "Removes all keys.", since: "1.0.0", group: "server", cost: "O(N) where N is the number of keys", run: cmdFlush},
		{name: "flushall", arity: -1, flags: write, usage: "[ASYNC|SYNC]", summary: "Removes all keys.", since: "1.0.0", group: "server", cost: "O(N) where N is the number of keys", run: cmdFlush},
		{name: "module", arity: -2, summary: "A container for module commands.", since: "4.0.0", group: "server", sub: moduleRows()},
		{name: "monitor", arity: 1, flags: loading | admin | noScript | noMulti, summary: "Listens for all requests received by the server in real-time.", since: "1.0.0", group: "server", run: cmdMonitor},
		{name: "slowlog", arity: -2, flags: loading, summary: "A container for slow log commands.", since: "2.2.12", group: "server", sub: slowlogRows()},
		{name: "shutdown", arity: -1, flags: loading | admin | noScript | noMulti, usage: "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]", summary: "Stops the server.", since: "1.0.0", group: "server", run: cmdShutdown},
		{name: "save", arity: 1, flags: admin | noScript | noMulti, summary: "Takes a snapshot, and has everybody wait for it.", since: "1.0.0", group: "server", cost: "O(N) where N is the number of keys", run: cmdSave},
		{name: "bgsave", arity: -1, flags: admin | noScript, usage: "[SCHEDULE]", summary: "Takes a snapshot in the background.", since: "1.0.0", group: "server", run: cmdBgsave},
		{name: "bgrewriteaof", arity: 1, flags: admin | noScript, summary: "Rewrites the append-only file in the background.", since: "1.0.0", group: "server", run: cmdBgrewriteaof},
		{name: "lastsave", arity: 1, flags: loading | fast, summary: "Returns the Unix time of the last good snapshot.", since: "1.0.0", group: "server", run: cmdLastsave},
		{name: "debug", arity: -2, flags: loading | admin | noScript, usage: "SLEEP seconds", summary: "Sleeps in the connection's event loop, where --enable-debug-command allows it.", since: "1.0.0", group: "server", run: cmdDebug},

		{name: "get", arity: 2, flags: readonly | fast, keys: oneKey, usage: "key", summary: "Returns a key's TAT, in Unix nanoseconds.", since: "1.0.0", group: "string", run: cmdGet},
		{name: "strlen", arity: 2, flags: readonly | fast, keys: oneKey, usage: "key", summary: "Returns the length of a TAT's decimal digits.", since: "2.2.0", group: "string", run: cmdStrlen},
		{name: "set", arity: -3, flags: write | denyOOM, keys: oneKey, usage: "key tat [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]", summary: "Sets a key's TAT, in Unix nanoseconds.", since: "1.0.0", group: "string", run: cmdSet},

		{name: "hgetall", arity: 2, flags: readonly, keys: oneKey, usage: "key", summary: "Returns the limits of a key, and what was used of each.", since: "2.0.0", group: "hash", cost: "O(N) where N is the number of limits", run: cmdHGetAll},
		{name: "hset", arity: -4, flags: write | denyOOM | fast, keys: oneKey, usage: "key field value [field value] ...", summary: "Sets limits of a key to states that HGETALL has shown.", since: "2.0.0", group: "hash", cost: "O(N) where N is the number of limits", run: cmdHSet},
		{name: "hlen", arity: 2, flags: readonly | fast, keys: oneKey, usage: "key", summary: "Returns the number of limits of a key.", since: "2.0.0", group: "hash", run: cmdHLen},

		{name: "exists", arity: -2, flags: readonly | fast, keys: allKeys, usage: "key ...", summary: "Counts the keys that exist.", since: "1.0.0", group: "generic", cost: "O(N) where N is the number of keys to check", run: cmdExists},
		{name: "type", arity: 2, flags: readonly | fast, keys: oneKey, usage: "key", summary: "Determines the type of value stored at a key.", since: "1.0.0", group: "generic", run: cmdType},
		{name: "del", arity: -2, flags: write, keys: allKeys, usage: "key ...", summary: "Deletes keys, and so resets their limits.", since: "1.0.0", group: "generic", cost: "O(N) where N is the number of keys", run: cmdDel},
		{name: "unlink", arity: -2, flags: write | fast, keys: allKeys, usage: "key ...", summary: "Deletes keys, as DEL does.", since: "4.0.0", group: "generic", cost: "O(N) where N is the number of keys", run: cmdDel},
		{name: "touch", arity: -2, flags: readonly | fast, keys: allKeys, usage: "key ...", summary: "Marks keys as used, and counts those that exist.", since: "3.2.1", group: "generic", cost: "O(N) where N is the number of keys", run: cmdTouch},
		{name: "rename", arity: 3, flags: write, keys: twoKeys, usage: "key newkey", summary: "Renames a key; its state moves along.", since: "1.0.0", group: "generic", run: cmdRename},
		{name: "randomkey", arity: 1, flags: readonly, summary: "Returns a random key.", since: "1.0.0", group: "generic", run: cmdRandomKey},
		{name: "keys", arity: 2, flags: readonly, usage: "pattern", summary: "Returns all keys that match a pattern.", since: "1.0.0", group: "generic", cost: "O(N) where N is the number of keys", run: cmdKeys},
		{name: "scan", arity: -2, flags: readonly, usage: "cursor [MATCH pattern] [COUNT count] [TYPE type]", summary: "Iterates over the keys.", since: "2.8.0", group: "generic", cost: "O(1) a call, O(N) for all", run: cmdScan},
		{name: "object", arity: -2, summary: "A container for object introspection commands.", since: "2.2.3", group: "generic", sub: objectRows()},

		{name: "ttl", arity: 2, flags: readonly | fast, keys: oneKey, usage: "key", summary: "Returns the seconds until a key expires.", since: "1.0.0", group: "generic", run: cmdTTL},
		{name: "pttl", arity: 2, flags: readonly | fast, keys: oneKey, usage: "key", summary: "Returns the milliseconds until a key expires.", since: "2.6.0", group: "generic", run: cmdPTTL},
		{name: "expiretime", arity: 2, flags: readonly | fast, keys: oneKey, usage: "key", summary: "Returns when a key expires, in Unix seconds.", since: "7.0.0", group: "generic", run: cmdExpireTime},
		{name: "pexpiretime", arity: 2, flags: readonly | fast, keys: oneKey, usage: "key", summary: "Returns when a key expires, in Unix milliseconds.", since: "7.0.0", group: "generic", run: cmdPExpireTime},
		{name: "expire", arity: -3, flags: write | fast, keys: oneKey, usage: "key seconds [NX|XX|GT|LT]", summary: "Sets how long a key lives, at most as long as its TAT.", since: "1.0.0", group: "generic", run: cmdExpire},
		{name: "pexpire", arity: -3, flags: write | fast, keys: oneKey, usage: "key milliseconds [NX|XX|GT|LT]", summary: "Sets how long a key lives, at most as long as its TAT.", since: "2.6.0", group: "generic", run: cmdPExpire},
		{name: "expireat", arity: -3, flags: write | fast, keys: oneKey, usage: "key unix-time-seconds [NX|XX|GT|LT]", summary: "Sets when a key expires, at the latest with its TAT.", since: "1.2.0", group: "generic", run: cmdExpireAt},
		{name: "pexpireat", arity: -3, flags: write | fast, keys: oneKey, usage: "key unix-time-milliseconds [NX|XX|GT|LT]", summary: "Sets when a key expires, at the latest with its TAT.", since: "2.6.0", group: "generic", run: cmdPExpireAt},
		{name: "persist", arity: 2, flags: write | fast, keys: oneKey, usage: "key", summary: "Removes a key's own expiry; it still ends with its TAT.", since: "2.2.0", group: "generic", run: cmdPersist},

		{name: "multi", arity: 1, flags: loading | fast | immediate | noScript, summary: "Starts a transaction.", since: "1.2.0", group: "transactions", run: cmdMulti},
		{name: "exec", arity: 1, flags: loading | immediate | skipSlowlog | noScript, summary: "Executes all commands in a transaction.", since: "1.2.0", group: "transactions", cost: "Depends on commands in the transaction", run: cmdExec},
		{name: "discard", arity: 1, flags: loading | fast | immediate | noScript, summary: "Discards a transaction.", since: "2.0.0", group: "transactions", run: cmdDiscard},
		{name: "watch", arity: -2, flags: loading | fast | immediate | noScript, keys: allKeys, usage: "key ...", summary: "Makes the next EXEC depend on keys that do not change.", since: "2.2.0", group: "transactions", cost: "O(1) for every key", run: cmdWatch},
		{name: "unwatch", arity: 1, flags: loading | fast | noScript, summary: "Forgets about watched keys.", since: "2.2.0", group: "transactions", run: cmdUnwatch},
	}
}
