package redis

import (
	"strings"
)

// difference is a reply that need not be Redis's, and what it must be instead.
type difference struct {
	why  string
	fits func(celld, redis string) bool
}

// redisDifferences lists the lines of resp/testdata/redis whose replies may differ from redis-server's.
var redisDifferences = map[string]difference{
	"PEXPIRETIME far": {whyFar, always(":9223372036854\r\n")},
	"EXPIRETIME far":  {whyFar, always(":9223372037\r\n")},

	`SCAN -1`: {whyCursor, always("-ERR invalid cursor\r\n")},
	`SCAN ""`: {whyCursor, always("-ERR invalid cursor\r\n")},
	`SCAN +0`: {whyCursor, always("-ERR invalid cursor\r\n")},

	`NOSUCH "a b" 'c"d' "e\r\nf" "\x00\x01" ""`: {whyNUL, bothError},
	`"NO\x00SUCH" x`:         {whyNUL, bothError},
	`raw "PING a\x00b\r\n"`:  {whyWaits, answered},
	`raw "PI\x00NG\r\n"`:     {whyWaits, answered},
	`raw "\x00\r\nPING\r\n"`: {whyWaits, answered},
	`raw "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n"`: {whyWaits, answered},

	`raw "*1\r\n\x00\r\n"`:  {whyNUL, bothStart("-ERR Protocol error: expected '$', got '", "")},
	`raw "*1000000000\r\n"`: {whyArgs, always("-ERR Protocol error: invalid multibulk length\r\n")},
	`raw "*1048577\r\n"`:    {whyArgs, always("-ERR Protocol error: invalid multibulk length\r\n")},

	`SLOWLOG GET 1 2`:                         {"as of any other command", bothStart("-ERR wrong number of arguments for 'slowlog|get' command", "-ERR unknown subcommand or wrong number of arguments for 'GET'")},
	`raw "CLIENT REPLY OFF\r\n*1\r\n:x\r\n"`:  {whyDeaf, always("")},
	`raw "CLIENT REPLY OFF\r\nPING \"\r\n"`:   {whyDeaf, always("")},
	`raw "CLIENT REPLY SKIP\r\n*1\r\n:y\r\n"`: {whyDeaf, always("")},

	`CONFIG SET port 5 nosuch 1`: {"the port cannot be changed", bothStart("-ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable config", "-ERR Unknown option")},
	`CONFIG SET maxmemory ""`:    {"Redis takes no number for 0", bothStart("-ERR CONFIG SET failed (possibly related to argument 'maxmemory')", "+OK")},
	`CONFIG SET port x`:          {"the port cannot be changed, and nothing is parsed", bothStart("-ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable config", "-ERR CONFIG SET failed")},
	`Client GetName`: {"a HELLO that fails changes nothing; Redis keeps the name that came before the fault",
		func(celld, _ string) bool { return celld == "$-1\r\n" || celld == "_\r\n" }},
	`ACL SETUSER a %R`: {"Redis takes it for a pattern that is empty", bothStart("-ERR Error in ACL SETUSER modifier '%R': Syntax error\r\n", "+OK")},

	`ACL LOAD`: {whyFile, bothStart(noACLFile+"Start celld with --aclfile", noACLFile)},
	`ACL SAVE`: {whyFile, bothStart(noACLFile+"Start celld with --aclfile", noACLFile)},

	`OBJECT HELP`: {"the words say what the commands do here", bothStart("*", "*")},
}

const noACLFile = "-ERR This Redis instance is not configured to use an ACL file. "

const (
	whyFar    = "a deadline is held in int64 nanoseconds, so at most in the year 2262"
	whyFile   = "CONFIG REWRITE, which Redis advises, is an error"
	whyCursor = "Redis reads what is no number as the number strtoul makes of it"
	whyNUL    = "Redis's error texts end at a NUL, as C's strings do"
	whyWaits  = "Redis looks for the end of the line only up to a NUL, and waits for ever"
	whyArgs   = "a command has at most --proto-max-multibulk-len arguments; Redis waits for 2^31"
	whyDeaf   = "neither says anything; Redis forgets to close the connection, and hears nothing on it any more"
)

func always(want string) func(celld, redis string) bool {
	return func(celld, _ string) bool { return celld == want }
}

func bothStart(celldPrefix, redisPrefix string) func(celld, redis string) bool {
	return func(celld, redis string) bool {
		return strings.HasPrefix(celld, celldPrefix) && strings.HasPrefix(redis, redisPrefix)
	}
}

func bothError(celld, redis string) bool {
	return strings.HasPrefix(celld, "-ERR unknown command '") && strings.HasPrefix(redis, "-ERR unknown command '")
}

func answered(celld, redis string) bool { return celld != "" && redis == "" }
