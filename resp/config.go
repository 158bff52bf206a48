package resp

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"celld/persistence"
)

// Config holds every setting of the daemon. Its zero value is of no use: NewConfig makes one.
type Config struct {
	bind            *bindValue
	port            *intValue
	unixSocket      *textValue
	unixSocketPerm  *textValue
	maxClients      *intValue
	timeout         *intValue
	tcpKeepalive    *intValue
	ioThreads       *intValue
	shutdownTimeout *intValue
	shutdownDelay   *intValue

	requirePass     *textValue
	requirePassFile *textValue
	protectedMode   *yesNoValue
	debugCommand    *enumValue

	maxKeys         *intValue
	maxMemory       *sizeValue
	maxMemoryPolicy *enumValue
	logMax          *intValue
	policiesFile    *textValue
	policies        []namedLimit // that the file lists

	maxMultibulkLen   *intValue
	maxBulkLen        *sizeValue
	queryBufferLimit  *sizeValue
	outputBufferLimit *sizeValue

	dir               *textValue
	dirLockWait       *intValue
	dbFilename        *textValue
	save              *textValue
	appendOnly        *yesNoValue
	appendFilename    *textValue
	appendFsync       *enumValue
	rewritePercentage *intValue
	rewriteMinSize    *sizeValue
	loadTruncated     *yesNoValue

	luaTimeLimit      *intValue
	slowlogSlowerThan *intValue
	slowlogMaxLen     *intValue
	latencyThreshold  *intValue
	logLevel          *enumValue
	logFormat         *enumValue

	savePoints atomic.Pointer[[]persistence.SavePoint]
	onMemory   func(maxMemory, clients int64)

	rows []Setting
}

// Setting is one row of the configuration: the flag --Name, the environment variable CELLD_NAME, the parameter of
// CONFIG GET and SET, and a line of --help.
type Setting struct {
	Name    string
	Group   string
	Help    string
	Value   value
	Default string // the default as users write it, such as 64mb

	mutable bool   // CONFIG SET may change it
	secret  bool   // neither --help nor the log shows it
	refusal string // CONFIG SET's error for a value that cannot be read, where Redis has its own text
}

// Groups of settings, in the order of --help.
const (
	groupNetwork  = "Network"
	groupSecurity = "Security"
	groupLimits   = "Keys and memory"
	groupWire     = "Limits of one client"
	groupDisk     = "Persistence"
	groupLog      = "Log and diagnostics"
)

// NewConfig returns the defaults: loopback only, port 6379, a million keys.
func NewConfig() *Config {
	c := &Config{
		bind:            newBind("127.0.0.1", "-::1"),
		port:            newInt(6379, 0, 65535, "port"),
		unixSocket:      newText("", "path"),
		unixSocketPerm:  newText("", "mode"),
		maxClients:      newInt(10000, 1, 1<<20, "n"),
		timeout:         newInt(0, 0, math.MaxInt32, "seconds"),
		tcpKeepalive:    newInt(300, 0, math.MaxInt32, "seconds"),
		ioThreads:       newInt(int64(max(1, runtime.GOMAXPROCS(0)/2)), 1, 128, "n"),
		shutdownTimeout: newInt(10, 0, 3600, "seconds"),
		shutdownDelay:   newInt(0, 0, 3600, "seconds"),

		requirePass:     newText("", "password"),
		requirePassFile: newText("", "path"),
		protectedMode:   newYesNo(true),
		debugCommand:    newEnum("no", "yes", "local"),

		maxKeys:         newInt(1_000_000, 1, math.MaxInt32, "n"),
		maxMemory:       newSize(512<<20, 0),
		maxMemoryPolicy: newEnum("allkeys-lru", "noeviction"),
		logMax:          newInt(10_000, 1, 1<<20, "n"),
		policiesFile:    newText("", "path"),

		maxMultibulkLen:   newInt(1<<20, 16, math.MaxInt32, "n"),
		maxBulkLen:        newSize(64<<10, 1<<10),
		queryBufferLimit:  newSize(16<<20, 128<<10),
		outputBufferLimit: newSize(64<<20, 128<<10),

		dir:               newText(".", "path"),
		dirLockWait:       newInt(10, 0, math.MaxInt32, "seconds"),
		dbFilename:        newText("dump.rdb", "name"),
		save:              newText("", "pairs"),
		appendOnly:        newYesNo(false),
		appendFilename:    newText("appendonly.aof", "name"),
		appendFsync:       newEnum("everysec", "always", "no"),
		rewritePercentage: newInt(100, 0, math.MaxInt32, "percent"),
		rewriteMinSize:    newSize(64<<20, 0),
		loadTruncated:     newYesNo(true),

		luaTimeLimit:      newInt(5_000, 0, math.MaxInt32, "ms"),
		slowlogSlowerThan: newInt(10_000, -1, math.MaxInt64, "µs"),
		slowlogMaxLen:     newInt(128, 0, 1<<20, "n"),
		latencyThreshold:  newInt(0, 0, math.MaxInt64, "ms"),
		logLevel:          newEnum("notice", "debug", "verbose", "warning"),
		logFormat:         newEnum("text", "json"),
	}
	c.unixSocketPerm.valid = func(text string) error {
		if text == "" {
			return errPerm
		}
		_, err := parsePerm(text)
		return err
	}
	c.dir.valid, c.requirePassFile.valid, c.policiesFile.valid = checkPath, checkPath, checkPath
	c.save.valid = func(text string) error { _, err := persistence.ParseSavePoints(text); return err }
	c.save.onSet = func(text string) {
		points, _ := persistence.ParseSavePoints(text)
		c.savePoints.Store(&points)
	}
	c.dbFilename.valid, c.appendFilename.valid = checkFilename, checkFilename
	c.rows = []Setting{
		{Name: "bind", Group: groupNetwork, Value: c.bind, Help: "addresses to listen on; repeat it or separate by commas; - in front of an address makes it optional"},
		{Name: "port", Group: groupNetwork, Value: c.port, Help: "TCP port; 0: any free port, or with --unixsocket no TCP at all"},
		{Name: "unixsocket", Group: groupNetwork, Value: c.unixSocket, Help: "unix socket to listen on as well"},
		{Name: "unixsocketperm", Group: groupNetwork, Value: c.unixSocketPerm, Help: "permissions of the unix socket, octal, such as 770"},
		{Name: "maxclients", Group: groupNetwork, Value: c.maxClients, mutable: true, Help: "most connections at once; one more gets an error and is closed"},
		{Name: "timeout", Group: groupNetwork, Value: c.timeout, mutable: true, Help: "close a connection that has been idle for this long; 0: never"},
		{Name: "tcp-keepalive", Group: groupNetwork, Value: c.tcpKeepalive, mutable: true, Help: "probe idle TCP connections this often; 0: never"},
		{Name: "io-threads", Group: groupNetwork, Value: c.ioThreads, Help: "event loops; the default is half the CPUs, at least one"},
		{Name: "shutdown-delay", Group: groupNetwork, Value: c.shutdownDelay, mutable: true, Help: "after SIGTERM or SIGINT, go on serving for this long before stopping; a second signal ends the delay"},
		{Name: "shutdown-timeout", Group: groupNetwork, Value: c.shutdownTimeout, mutable: true, Help: "when stopping, longest wait until all requests that have arrived are answered"},

		{Name: "requirepass", Group: groupSecurity, Value: c.requirePass, mutable: true, secret: true, Help: "password that clients must send with AUTH; other users of the machine can see flags, so prefer --requirepass-file or the environment"},
		{Name: "requirepass-file", Group: groupSecurity, Value: c.requirePassFile, Help: "file that holds the password; a line break at its end is not part of it"},
		{Name: "protected-mode", Group: groupSecurity, Value: c.protectedMode, mutable: true, Help: "without a password, serve only connections from the loopback interface"},
		{Name: "enable-debug-command", Group: groupSecurity, Value: c.debugCommand, Help: "who may use DEBUG SLEEP"},

		{Name: "max-keys", Group: groupLimits, Value: c.maxKeys, mutable: true, Help: "most keys to hold"},
		{Name: "maxmemory", Group: groupLimits, Value: c.maxMemory, mutable: true, Help: "most memory for keys, by estimate; the process stays below 1.5 times this plus 64mb; 0: only --max-keys bounds it"},
		{Name: "maxmemory-policy", Group: groupLimits, Value: c.maxMemoryPolicy, mutable: true, Help: "when full: reset the least recently used limit, or refuse new keys with -OOM"},

		{Name: "policies", Group: groupLimits, Value: c.policiesFile, Help: "file of policies to set at the start: a name and a limit on each line"},
		{Name: "log-max", Group: groupLimits, Value: c.logMax, mutable: true, Help: "largest count of a limit with algo=log, which remembers each call, 16 bytes each"},

		{Name: "proto-max-multibulk-len", Group: groupWire, Value: c.maxMultibulkLen, mutable: true, Help: "most arguments of one command"},
		{Name: "proto-max-bulk-len", Group: groupWire, Value: c.maxBulkLen, mutable: true, Help: "longest argument, and so the longest key"},
		{Name: "client-query-buffer-limit", Group: groupWire, Value: c.queryBufferLimit, mutable: true, Help: "most bytes of an unfinished command or of a transaction's queue; a client that exceeds it is closed"},
		{Name: "lua-time-limit", Group: groupWire, Value: c.luaTimeLimit, mutable: true, Help: "how long a script may run before other clients get -BUSY and can end it with SCRIPT KILL; 0: they wait"},
		{Name: "client-output-buffer-limit", Group: groupWire, Value: c.outputBufferLimit, mutable: true, Help: "most bytes of replies that a client has not read; a client that exceeds it is closed"},

		{Name: "dir", Group: groupDisk, Value: c.dir, Help: "directory of the files"},
		{Name: "dir-lock-wait", Group: groupDisk, Value: c.dirLockWait, Help: "at the start, longest wait for another process to leave the directory; 0: do not wait"},
		{Name: "save", Group: groupDisk, Value: c.save, mutable: true, refusal: errSaveParameters, Help: "take a snapshot after this many seconds if this many changes were made, in pairs: '3600 1 300 100'; empty: neither take nor read one"},
		{Name: "dbfilename", Group: groupDisk, Value: c.dbFilename, Help: "name of the snapshot, an RDB file"},
		{Name: "appendonly", Group: groupDisk, Value: c.appendOnly, mutable: true, Help: "log changes to the append-only file"},
		{Name: "appendfilename", Group: groupDisk, Value: c.appendFilename, Help: "name of the append-only file"},
		{Name: "appendfsync", Group: groupDisk, Value: c.appendFsync, mutable: true, Help: "when changes must be on the disk: within a second, before the reply leaves, or when the system decides"},
		{Name: "auto-aof-rewrite-percentage", Group: groupDisk, Value: c.rewritePercentage, mutable: true, Help: "rewrite the append-only file when it has grown by this much; 0: never"},
		{Name: "auto-aof-rewrite-min-size", Group: groupDisk, Value: c.rewriteMinSize, mutable: true, Help: "do not rewrite an append-only file that is smaller than this"},
		{Name: "aof-load-truncated", Group: groupDisk, Value: c.loadTruncated, Help: "cut off an incomplete command at the end of the append-only file; no: refuse to start"},

		{Name: "slowlog-log-slower-than", Group: groupLog, Value: c.slowlogSlowerThan, mutable: true, Help: "record slower commands in SLOWLOG; 0: every command, -1: none"},
		{Name: "slowlog-max-len", Group: groupLog, Value: c.slowlogMaxLen, mutable: true, Help: "entries that SLOWLOG keeps"},
		{Name: "latency-monitor-threshold", Group: groupLog, Value: c.latencyThreshold, mutable: true, Help: "record in LATENCY what takes at least this long; 0: nothing"},
		{Name: "loglevel", Group: groupLog, Value: c.logLevel, mutable: true, Help: "least important events to log"},
		{Name: "log-format", Group: groupLog, Value: c.logFormat, Help: "text for people, json for machines; written to standard error"},
	}
	c.savePoints.Store(new([]persistence.SavePoint))
	for i := range c.rows {
		c.rows[i].Default = c.rows[i].Value.String()
		if size, ok := c.rows[i].Value.(*sizeValue); ok {
			c.rows[i].Default = size.human()
		}
	}
	c.row("maxmemory").Default = "half the container's limit, else " + c.maxMemory.human()
	return c
}

// Settings returns all rows, in the order of --help.
func (c *Config) Settings() []Setting { return c.rows }

// LogFormat is "text" or "json".
func (c *Config) LogFormat() string { return c.logFormat.Get() }

// OnLogLevel calls set now and after each change, with the log level: debug, verbose, notice or warning.
func (c *Config) OnLogLevel(set func(string)) {
	c.logLevel.onSet = set
	set(c.logLevel.Get())
}

// MaxClients and IOThreads are the most connections, and the number of event loops; main logs both.
func (c *Config) MaxClients() int64 { return c.maxClients.Get() }
func (c *Config) IOThreads() int64  { return c.ioThreads.Get() }

// MaxKeys, MaxMemory (bytes; 0: no limit) and NoEviction (refuse new keys when full) are the limits of the store.
func (c *Config) MaxKeys() int64   { return c.maxKeys.Get() }
func (c *Config) MaxMemory() int64 { return c.maxMemory.Get() }
func (c *Config) NoEviction() bool { return c.maxMemoryPolicy.Get() == "noeviction" }

// MaxMemoryText is MaxMemory as users write it, such as 64mb.
func (c *Config) MaxMemoryText() string { return c.maxMemory.human() }

// SetMaxMemory sets MaxMemory, in bytes. Call it before NewServer.
func (c *Config) SetMaxMemory(n int64) { c.maxMemory.n.Store(n) }

// OnMemory calls set now and after each change, with MaxMemory and the size of all clients' buffers, both in bytes.
func (c *Config) OnMemory(set func(maxMemory, clients int64)) {
	c.onMemory = set
	set(c.MaxMemory(), 0)
}

// Persistence returns the settings for files as options of persistence.New. Clock and Log are not set.
func (c *Config) Persistence() persistence.Options {
	return persistence.Options{
		Dir: c.dir.Get(), DBFilename: c.dbFilename.Get(), AppendOnly: c.appendOnly.Get(), AppendFilename: c.appendFilename.Get(),
		Fsync: persistence.ParseFsync(c.appendFsync.Get()), LoadTruncated: c.loadTruncated.Get(),
		LockWait:          time.Duration(c.dirLockWait.Get()) * time.Second,
		SavePoints:        func() []persistence.SavePoint { return *c.savePoints.Load() },
		RewritePercentage: c.rewritePercentage.Get,
		RewriteMinSize:    c.rewriteMinSize.Get,
	}
}

// Load reads the files that the flags name: the policies and the password. changed reports whether a setting was given. The
// error says which file cannot be used.
func (c *Config) Load(changed func(name string) bool) error {
	if path := c.policiesFile.Get(); path != "" {
		var err error
		if c.policies, err = readPolicies(path, c.logMax.Get()); err != nil {
			return err
		}
	}
	return c.LoadPassword(changed)
}

// LoadPassword reads the password's file only, which is all that a client (celld ping) needs.
func (c *Config) LoadPassword(changed func(name string) bool) error {
	path := c.requirePassFile.Get()
	if path == "" {
		return nil
	}
	if changed("requirepass") {
		return errors.New("requirepass and requirepass-file are both set; give one")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the password: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return fmt.Errorf("read the password: %s is empty", path)
	}
	return c.requirePass.Set(password)
}

func (c *Config) row(name string) *Setting {
	for i := range c.rows {
		if c.rows[i].Name == name {
			return &c.rows[i]
		}
	}
	return nil
}

// checkPath refuses an empty path, which a script gives when its variable is not set. A server without its password's file, for
// example, would admit everybody.
func checkPath(text string) error {
	if text == "" {
		return errors.New("argument must be a path, not empty")
	}
	return nil
}

func checkFilename(text string) error {
	if text == "" || text != filepath.Base(text) || text == "." || text == ".." {
		return errors.New("argument must be a file name, not a path")
	}
	return nil
}

var errPerm = errors.New("argument must be an octal mode such as 770")

// parsePerm reads the mode of a socket file, in octal. Empty: the umask of the process decides.
func parsePerm(text string) (os.FileMode, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o777 {
		return 0, errPerm
	}
	return os.FileMode(n), nil
}
