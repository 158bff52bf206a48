package resp

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"celld/persistence"
	"celld/persistence/regular"
	"celld/store/memory"
	"celld/store/remote"
	"celld/store/remote/link"
)

// Config holds every setting of the daemon. Its zero value is of no use: NewConfig makes one.
type Config struct {
	bind            *param[[]string]
	port            *param[int64]
	unixSocket      *param[string]
	unixSocketPerm  *param[string]
	maxClients      *param[int64]
	timeout         *param[int64]
	tcpKeepalive    *param[int64]
	ioThreads       *param[int64]
	shutdownTimeout *param[int64]
	shutdownDelay   *param[int64]

	requirePass     *param[string]
	requirePassFile *param[string]
	protectedMode   *param[bool]
	users           usersConfig

	maxKeys         *param[int64]
	maxMemory       *param[int64]
	maxMemoryPolicy *param[string]
	logMax          *param[int64]
	waitMax         *param[int64]
	maxWaiters      *param[int64]
	policiesFile    *param[string]
	policies        []namedLimit // that the file lists

	engine storeConfig
	http   httpConfig
	tls    tlsConfig

	maxMultibulkLen   *param[int64]
	maxBulkLen        *param[int64]
	queryBufferLimit  *param[int64]
	outputBufferLimit *param[int64]

	dir               *param[string]
	dirLockWait       *param[int64]
	dbFilename        *param[string]
	save              *param[string]
	appendOnly        *param[bool]
	appendFilename    *param[string]
	appendFsync       *param[string]
	rewritePercentage *param[int64]
	rewriteMinSize    *param[int64]
	loadTruncated     *param[bool]

	luaTimeLimit      *param[int64]
	slowlogSlowerThan *param[int64]
	slowlogMaxLen     *param[int64]
	latencyThreshold  *param[int64]
	logLevel          *param[string]
	logLevelFile      *param[string]
	logFormat         *param[string]

	onMemory func(maxMemory, clients int64)

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
	groupTLS      = "TLS"
	groupLimits   = "Keys and memory"
	groupWire     = "Limits of one client"
	groupStore    = "Limits on Redis or Valkey"
	groupDisk     = "Persistence"
	groupLog      = "Log and diagnostics"
	groupHTTP     = "HTTP"
)

// in puts a param in its field of a Config, and returns it for its row.
func in[T any](field **param[T], p *param[T]) value {
	*field = p
	return p
}

// NewConfig returns the defaults: loopback only, port 6379, a million keys.
func NewConfig() *Config {
	c := &Config{}
	c.rows = []Setting{
		{Name: "bind", Group: groupNetwork, Value: in(&c.bind, newBind("127.0.0.1", "-::1")), Help: "addresses to listen on; repeat it or separate by commas; - in front of an address makes it optional"},
		{Name: "port", Group: groupNetwork, Value: in(&c.port, newInt(6379, 0, 65535, "port")), Help: "TCP port; 0: any free port, or with --unixsocket or --tls-port no plain TCP at all"},
		{Name: "unixsocket", Group: groupNetwork, Value: in(&c.unixSocket, newText("", "path", nil)), Help: "unix socket to listen on as well"},
		{Name: "unixsocketperm", Group: groupNetwork, Value: in(&c.unixSocketPerm, newText("", "mode", checkPerm)), Help: "permissions of the unix socket, octal, such as 770"},
		{Name: "maxclients", Group: groupNetwork, Value: in(&c.maxClients, newInt(10000, 1, 1<<20, "n")), mutable: true, Help: "most connections at once; one more gets an error and is closed"},
		{Name: "timeout", Group: groupNetwork, Value: in(&c.timeout, newInt(0, 0, math.MaxInt32, "seconds")), mutable: true, Help: "close a connection that has been idle for this long; 0: never"},
		{Name: "tcp-keepalive", Group: groupNetwork, Value: in(&c.tcpKeepalive, newInt(300, 0, math.MaxInt32, "seconds")), mutable: true, Help: "probe idle TCP connections this often; 0: never"},
		{Name: "io-threads", Group: groupNetwork, Value: in(&c.ioThreads, newInt(int64(max(1, runtime.GOMAXPROCS(0)/2)), 1, 128, "n")), Help: "event loops; the default is half the CPUs, at least one"},
		{Name: "shutdown-delay", Group: groupNetwork, Value: in(&c.shutdownDelay, newInt(0, 0, 3600, "seconds")), mutable: true, Help: "after SIGTERM or SIGINT, go on serving for this long before stopping; a second signal ends the delay"},
		{Name: "shutdown-timeout", Group: groupNetwork, Value: in(&c.shutdownTimeout, newInt(10, 0, 3600, "seconds")), mutable: true, Help: "when stopping, longest wait until all requests that have arrived are answered"},

		{Name: "requirepass", Group: groupSecurity, Value: in(&c.requirePass, newText("", "password", nil)), mutable: true, secret: true, Help: "password that clients must send with AUTH; other users of the machine can see flags, so prefer --requirepass-file or the environment"},
		{Name: "requirepass-file", Group: groupSecurity, Value: in(&c.requirePassFile, newText("", "path", checkPath)), Help: "file that holds the password; a line break at its end is not part of it"},
		{Name: "protected-mode", Group: groupSecurity, Value: in(&c.protectedMode, newYesNo(true)), mutable: true, Help: "without a password, serve only connections from the loopback interface"},

		{Name: "max-keys", Group: groupLimits, Value: in(&c.maxKeys, newInt(1_000_000, 1, math.MaxInt32, "n")), mutable: true, Help: "most keys to hold"},
		{Name: "maxmemory", Group: groupLimits, Value: in(&c.maxMemory, newSize(512<<20, 0)), mutable: true, Help: "most memory for keys, by estimate; the process stays below 1.5 times this plus 64mb; 0: only --max-keys bounds it"},
		{Name: "maxmemory-policy", Group: groupLimits, Value: in(&c.maxMemoryPolicy, newEnum("allkeys-lru", "noeviction")), mutable: true, Help: "when full: reset the least recently used limit, or refuse new keys with -OOM"},

		{Name: "policies", Group: groupLimits, Value: in(&c.policiesFile, newText("", "path", checkPath)), Help: "file of policies to set at the start: a name and a limit on each line"},
		{Name: "log-max", Group: groupLimits, Value: in(&c.logMax, newInt(10_000, 1, 1<<20, "n")), mutable: true, Help: "largest count of a limit with algo=log, which remembers each call, 16 bytes each"},
		{Name: "wait-max", Group: groupLimits, Value: in(&c.waitMax, newInt(60_000, 0, 86_400_000, "ms")), mutable: true, Help: "longest that a call with WAIT or RESERVE may ask for; more is an error"},
		{Name: "max-waiters", Group: groupLimits, Value: in(&c.maxWaiters, newInt(10_000, 1, 1<<20, "n")), mutable: true, Help: "most calls with WAIT that wait at once; one more that would wait gets an error"},

		{Name: "proto-max-multibulk-len", Group: groupWire, Value: in(&c.maxMultibulkLen, newInt(1<<20, 16, math.MaxInt32, "n")), mutable: true, Help: "most arguments of one command"},
		{Name: "proto-max-bulk-len", Group: groupWire, Value: in(&c.maxBulkLen, newSize(64<<10, 1<<10)), mutable: true, Help: "longest argument, and so the longest key"},
		{Name: "client-query-buffer-limit", Group: groupWire, Value: in(&c.queryBufferLimit, newSize(16<<20, 128<<10)), mutable: true, Help: "most bytes of an unfinished command or of a transaction's queue; a client that exceeds it is closed"},
		{Name: "lua-time-limit", Group: groupWire, Value: in(&c.luaTimeLimit, newInt(5_000, 0, math.MaxInt32, "ms")), mutable: true, Help: "how long a script may run before other clients get -BUSY and can end it with SCRIPT KILL; 0: they wait"},
		{Name: "client-output-buffer-limit", Group: groupWire, Value: in(&c.outputBufferLimit, newSize(64<<20, 128<<10)), mutable: true, Help: "most bytes of replies that a client has not read; a client that exceeds it is closed"},

		{Name: "dir", Group: groupDisk, Value: in(&c.dir, newText(".", "path", checkPath)), Help: "directory of the files"},
		{Name: "dir-lock-wait", Group: groupDisk, Value: in(&c.dirLockWait, newInt(10, 0, math.MaxInt32, "seconds")), Help: "at the start, longest wait for another process to leave the directory; 0: do not wait"},
		{Name: "save", Group: groupDisk, Value: in(&c.save, newText("", "pairs", checkSavePoints)), mutable: true, refusal: errSaveParameters, Help: "take a snapshot after this many seconds if this many changes were made, in pairs: '3600 1 300 100'; empty: neither take nor read one"},
		{Name: "dbfilename", Group: groupDisk, Value: in(&c.dbFilename, newText("dump.rdb", "name", checkFilename)), Help: "name of the snapshot, an RDB file"},
		{Name: "appendonly", Group: groupDisk, Value: in(&c.appendOnly, newYesNo(false)), mutable: true, Help: "log changes to the append-only file"},
		{Name: "appendfilename", Group: groupDisk, Value: in(&c.appendFilename, newText("appendonly.aof", "name", checkFilename)), Help: "name of the append-only file"},
		{Name: "appendfsync", Group: groupDisk, Value: in(&c.appendFsync, newEnum("everysec", "always", "no")), mutable: true, Help: "when changes must be on the disk: within a second, before the reply leaves, or when the system decides"},
		{Name: "auto-aof-rewrite-percentage", Group: groupDisk, Value: in(&c.rewritePercentage, newInt(100, 0, math.MaxInt32, "percent")), mutable: true, Help: "rewrite the append-only file when it has grown by this much; 0: never"},
		{Name: "auto-aof-rewrite-min-size", Group: groupDisk, Value: in(&c.rewriteMinSize, newSize(64<<20, 0)), mutable: true, Help: "do not rewrite an append-only file that is smaller than this"},
		{Name: "aof-load-truncated", Group: groupDisk, Value: in(&c.loadTruncated, newYesNo(true)), Help: "cut off an incomplete command at the end of the append-only file; no: refuse to start"},

		{Name: "slowlog-log-slower-than", Group: groupLog, Value: in(&c.slowlogSlowerThan, newInt(10_000, -1, math.MaxInt64, "µs")), mutable: true, Help: "record slower commands in SLOWLOG; 0: every command, -1: none"},
		{Name: "slowlog-max-len", Group: groupLog, Value: in(&c.slowlogMaxLen, newInt(128, 0, 1<<20, "n")), mutable: true, Help: "entries that SLOWLOG keeps"},
		{Name: "latency-monitor-threshold", Group: groupLog, Value: in(&c.latencyThreshold, newInt(0, 0, math.MaxInt64, "ms")), mutable: true, Help: "record in LATENCY what takes at least this long; 0: nothing"},
		{Name: "loglevel", Group: groupLog, Value: in(&c.logLevel, newEnum("notice", "debug", "verbose", "warning")), mutable: true, Help: "least important events to log"},
		{Name: "loglevel-file", Group: groupLog, Value: in(&c.logLevelFile, newText("", "path", checkPath)), Help: "file that holds the loglevel; SIGHUP has it read again"},
		{Name: "log-format", Group: groupLog, Value: in(&c.logFormat, newEnum("text", "json")), Help: "text for people, json for machines; written to standard error"},
	}
	before := func(group string, rows []Setting) {
		at := slices.IndexFunc(c.rows, func(row Setting) bool { return row.Group == group })
		c.rows = slices.Insert(c.rows, at, rows...)
	}
	before(groupLimits, c.tls.rows())
	before(groupDisk, append(c.engine.rows(), c.http.rows()...))
	at := slices.IndexFunc(c.rows, func(row Setting) bool { return row.Name == "protected-mode" })
	c.rows = slices.Insert(c.rows, at, c.users.rows()...)
	for i := range c.rows {
		row := &c.rows[i]
		row.Default = row.Value.String()
		if size, ok := row.Value.(*param[int64]); ok && size.kind == "size" {
			row.Default = sizeText(size.Get())
		}
	}
	c.row("maxmemory").Default = "half the container's limit, else " + c.MaxMemoryText()
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
func (c *Config) MaxMemoryText() string { return sizeText(c.maxMemory.Get()) }

// SetMaxMemory sets MaxMemory, in bytes. Call it before NewServer.
func (c *Config) SetMaxMemory(n int64) { c.maxMemory.current.Store(&n) }

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
		SavePoints:        c.savePoints,
		RewritePercentage: c.rewritePercentage.Get,
		RewriteMinSize:    c.rewriteMinSize.Get,
	}
}

// Load reads the files that the flags name: the policies, the users, the certificates and the passwords. changed reports whether a setting
// was given. The error joins one for each that cannot be used.
func (c *Config) Load(changed func(name string) bool) error {
	return errors.Join(
		c.loadPolicies(), c.loadStore(changed), c.loadHTTP(), c.users.load(), c.tls.load(c.http.tls.Get()), c.loadLogLevel(changed), c.LoadPassword(changed),
	)
}

func (c *Config) loadPolicies() (err error) {
	if path := c.policiesFile.Get(); path != "" {
		c.policies, err = readPolicies(path, c.logMax.Get())
	}
	return err
}

// Check looks at the files that a start would use beside those that Load has read, as far as that can be done without writing. The error
// joins one for each that the start would fail on, or that nobody could use the server by: a certificate that is not valid.
func (c *Config) Check() error {
	disk := c.Persistence()
	disk.Clock, disk.Log = time.Now().UnixNano, slog.New(slog.DiscardHandler)
	err := persistence.New(memory.New(memory.Options{MaxKeys: 1, Journal: disk.AppendOnly}), disk).Check()
	err = errors.Join(err, c.checkCertificates(time.Now()))
	o := c.Engine()
	if o == nil {
		return err
	}
	if _, wrong := link.ParseURL(o.URL); wrong == nil { // else Load has said so
		err = errors.Join(err, remote.Check(*o))
	}
	return err
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
	text, err := regular.ReadFile(path)
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

// parsePerm reads the mode of a socket file, in octal.
func parsePerm(text string) (os.FileMode, error) {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o777 {
		return 0, errors.New("argument must be an octal mode such as 770")
	}
	return os.FileMode(n), nil
}

func checkPerm(text string) error { _, err := parsePerm(text); return err }

func checkSavePoints(text string) error { _, err := persistence.ParseSavePoints(text); return err }

func (c *Config) savePoints() []persistence.SavePoint {
	points, _ := persistence.ParseSavePoints(c.save.Get())
	return points
}
