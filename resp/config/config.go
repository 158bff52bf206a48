package config

import (
	"cmp"
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
	"sync"
	"time"

	"celld/persistence"
	"celld/persistence/regular"
	"celld/store/memory"
)

// Config holds every setting of the daemon. Its zero value is of no use: New makes one.
type Config struct {
	Bind            *Param[[]string]
	Port            *Param[int64]
	UnixSocket      *Param[string]
	UnixSocketPerm  *Param[string]
	MaxClients      *Param[int64]
	Timeout         *Param[int64]
	TCPKeepalive    *Param[int64]
	IOThreads       *Param[int64]
	ShutdownTimeout *Param[int64]
	ShutdownDelay   *Param[int64]

	RequirePass     *Param[string]
	RequirePassFile *Param[string]
	ProtectedMode   *Param[bool]
	ACLFile         *Param[string]
	ACLLogMaxLen    *Param[int64]
	ProbeUser       *Param[string]
	ProbePassword   *Param[string]

	MaxKeys         *Param[int64]
	MaxMemory       *Param[int64]
	MaxMemoryFrom   string // for the log, once it is loaded: setting, default or, by a Part, cgroup
	MaxMemoryPolicy *Param[string]
	LogMax          *Param[int64]
	NearLimit       *Param[int64]
	WaitMax         *Param[int64]
	MaxWaiters      *Param[int64]
	PoliciesFile    *Param[string]

	TLS tlsConfig

	MaxMultibulkLen   *Param[int64]
	MaxBulkLen        *Param[int64]
	QueryBufferLimit  *Param[int64]
	OutputBufferLimit *Param[int64]

	Dir               *Param[string]
	DirLockWait       *Param[int64]
	DBFilename        *Param[string]
	Save              *Param[string]
	AppendOnly        *Param[bool]
	AppendFilename    *Param[string]
	AppendFsync       *Param[string]
	RewritePercentage *Param[int64]
	RewriteMinSize    *Param[int64]
	LoadTruncated     *Param[bool]

	LuaTimeLimit      *Param[int64] // nil: there are no scripts
	SlowlogSlowerThan *Param[int64]
	SlowlogMaxLen     *Param[int64]
	LatencyThreshold  *Param[int64]
	LogLevel          *Param[string]
	LogLevelFile      *Param[string]
	LogFormat         *Param[string]
	Watch             *Param[bool]

	// OnMemory is called after each change of what keys may take or clients' buffers hold, both in bytes. nil: nobody is told.
	OnMemory func(keys, clients int64)

	rows     []Setting
	parts    []Part
	changing sync.Mutex   // one Change at a time
	view     sync.RWMutex // View sees all of a Change or nothing of it
}

// Setting is one row of the configuration: the flag --Name, the environment variable CELLD_NAME, the parameter of
// CONFIG GET and SET, and a line of --help.
type Setting struct {
	Name    string
	Group   string
	Help    string
	Value   value
	Default string // the default as users write it, such as 64mb; "": as Value has it

	Mutable bool // CONFIG SET may change it

	Secret bool // neither --help nor the log shows it

	refusal string        // CONFIG SET's error for a value that cannot be read, where Redis has its own text
	needs   func() string // its Part's; nil: it is in none
}

// Groups of settings, in the order of --help.
const (
	groupNetwork  = "Network"
	groupSecurity = "Security"
	groupTLS      = "TLS"
	groupLimits   = "Keys and memory"
	groupWire     = "Limits of one client"
	groupDisk     = "Persistence"
	groupLog      = "Log and diagnostics"
)

// In puts a param in its field of a Config, and returns it for its row.
func In[T any](field **Param[T], p *Param[T]) value {
	*field = p
	return p
}

// New returns the defaults: loopback only, port 6379, a million keys.
func New(parts ...Part) *Config {
	c := &Config{parts: parts}
	c.rows = []Setting{
		{Name: "bind", Group: groupNetwork, Value: In(&c.Bind, newBind("127.0.0.1", "-::1")), Help: "addresses to listen on; repeat it or separate by commas; - in front of an address makes it optional"},
		{Name: "port", Group: groupNetwork, Value: In(&c.Port, NewInt(6379, 0, 65535, "port")), Help: "TCP port; 0: any free port, or with --unixsocket or --tls-port no plain TCP at all"},
		{Name: "unixsocket", Group: groupNetwork, Value: In(&c.UnixSocket, NewText("", "path", nil)), Help: "unix socket to listen on as well"},
		{Name: "unixsocketperm", Group: groupNetwork, Value: In(&c.UnixSocketPerm, NewText("", "mode", Readable(ParsePerm))), Help: "permissions of the unix socket, octal, such as 770"},
		{Name: "maxclients", Group: groupNetwork, Value: In(&c.MaxClients, NewInt(10000, 1, 1<<20, "n")), Mutable: true, Help: "most connections at once; one more gets an error and is closed"},
		{Name: "timeout", Group: groupNetwork, Value: In(&c.Timeout, NewInt(0, 0, math.MaxInt32, "seconds")), Mutable: true, Help: "close a connection that has been idle for this long; 0: never"},
		{Name: "tcp-keepalive", Group: groupNetwork, Value: In(&c.TCPKeepalive, NewInt(300, 0, math.MaxInt32, "seconds")), Mutable: true, Help: "probe idle TCP connections this often; 0: never"},
		{Name: "io-threads", Group: groupNetwork, Value: In(&c.IOThreads, NewInt(int64(max(1, runtime.GOMAXPROCS(0)/2)), 1, 128, "n")), Help: "event loops; the default is half the CPUs, at least one"},
		{Name: "shutdown-delay", Group: groupNetwork, Value: In(&c.ShutdownDelay, NewInt(0, 0, 3600, "seconds")), Mutable: true, Help: "after SIGTERM or SIGINT, go on serving for this long before stopping; a second signal ends the delay"},
		{Name: "shutdown-timeout", Group: groupNetwork, Value: In(&c.ShutdownTimeout, NewInt(10, 0, 3600, "seconds")), Mutable: true, Help: "when stopping, longest wait until all requests that have arrived are answered"},

		{Name: "requirepass", Group: groupSecurity, Value: In(&c.RequirePass, NewText("", "password", nil)), Mutable: true, Secret: true, Help: "password that clients must send with AUTH; other users of the machine can see flags, so prefer --requirepass-file or the environment"},
		{Name: "requirepass-file", Group: groupSecurity, Value: In(&c.RequirePassFile, NewText("", "path", CheckPath)), Help: "file that holds the password, read again when it changes; a line break at its end is not part of it"},
		{Name: "aclfile", Group: groupSecurity, Value: In(&c.ACLFile, NewText("", "path", CheckPath)), Help: "file of users and what they may do, read again when it changes; ACL SAVE writes it"},
		{Name: "acllog-max-len", Group: groupSecurity, Value: In(&c.ACLLogMaxLen, NewInt(128, 0, 1024, "n")), Mutable: true, Help: "entries that ACL LOG keeps"},
		{Name: "probe-user", Group: groupSecurity, Value: In(&c.ProbeUser, NewText("", "name", nil)), Help: "user that celld ping and celld ready authenticate as; empty: the default user"},
		{Name: "probe-password", Group: groupSecurity, Value: In(&c.ProbePassword, NewSecret("password", Hidden)), Secret: true, Help: "its password; empty: that of --requirepass. Other users of the machine can see flags, so prefer the environment"},
		{Name: "protected-mode", Group: groupSecurity, Value: In(&c.ProtectedMode, NewYesNo(true)), Mutable: true, Help: "without a password, serve only connections from the loopback interface"},

		{Name: "max-keys", Group: groupLimits, Value: In(&c.MaxKeys, NewInt(1_000_000, 1, math.MaxInt32, "n")), Mutable: true, Help: "most keys to hold"},
		{Name: "maxmemory", Group: groupLimits, Value: In(&c.MaxMemory, NewSize(512<<20, 0)), Mutable: true, Help: "most memory for keys, by estimate; the process stays below 1.5 times this plus 64mb; 0: only --max-keys bounds it"},
		{Name: "maxmemory-policy", Group: groupLimits, Value: In(&c.MaxMemoryPolicy, newEnum("allkeys-lru", "noeviction")), Mutable: true, Help: "when full: reset the least recently used limit, or refuse new keys with -OOM"},

		{Name: "policies", Group: groupLimits, Value: In(&c.PoliciesFile, NewText("", "path", CheckPath)), Help: "file of policies and rules to set at the start, and when it changes: 'policy name limit' or 'rule deny pattern' on each line; CL.POLICY SAVE writes it"},
		{Name: "log-max", Group: groupLimits, Value: In(&c.LogMax, NewInt(10_000, 1, 1<<20, "n")), Mutable: true, Help: "largest count of a limit with algo=log, which remembers each call, 16 bytes each"},
		{Name: "near-limit", Group: groupLimits, Value: In(&c.NearLimit, NewInt(80, 1, 100, "percent")), Mutable: true, Help: "a call that passes and uses more of a limit of 10 or more counts as near; 100: none does"},
		{Name: "wait-max", Group: groupLimits, Value: In(&c.WaitMax, NewInt(60_000, 0, 86_400_000, "ms")), Mutable: true, Help: "longest wait that a call with WAIT or RESERVE may ask for; more is an error"},
		{Name: "max-waiters", Group: groupLimits, Value: In(&c.MaxWaiters, NewInt(10_000, 1, 1<<20, "n")), Mutable: true, Help: "most calls with WAIT that wait at once; one more that would wait gets an error"},

		{Name: "proto-max-multibulk-len", Group: groupWire, Value: In(&c.MaxMultibulkLen, NewInt(1<<20, 16, math.MaxInt32, "n")), Mutable: true, Help: "most arguments of one command"},
		{Name: "proto-max-bulk-len", Group: groupWire, Value: In(&c.MaxBulkLen, NewSize(64<<10, 1<<10)), Mutable: true, Help: "longest argument, and so the longest key"},
		{Name: "client-query-buffer-limit", Group: groupWire, Value: In(&c.QueryBufferLimit, NewSize(16<<20, 128<<10)), Mutable: true, Help: "most bytes of an unfinished command or of a transaction's queue; a client that exceeds it is closed"},
		{Name: "client-output-buffer-limit", Group: groupWire, Value: In(&c.OutputBufferLimit, NewSize(64<<20, 128<<10)), Mutable: true, Help: "most bytes of replies that a client has not read; a client that exceeds it is closed"},

		{Name: "dir", Group: groupDisk, Value: In(&c.Dir, NewText(".", "path", CheckPath)), Help: "directory of the files"},
		// Longer than shutdown-timeout, all of which a busy process on a slow disk may take to leave.
		{Name: "dir-lock-wait", Group: groupDisk, Value: In(&c.DirLockWait, NewInt(20, 0, math.MaxInt32, "seconds")), Help: "at the start, longest wait for another process to leave the directory; 0: do not wait"},
		{Name: "save", Group: groupDisk, Value: In(&c.Save, NewText("", "pairs", Readable(persistence.ParseSavePoints))), Mutable: true, refusal: errSaving, Help: "take a snapshot after this many seconds if this many changes were made, in pairs: '3600 1 300 100'; empty: neither take nor read one"},
		{Name: "dbfilename", Group: groupDisk, Value: In(&c.DBFilename, NewText("dump.rdb", "name", checkFilename)), Help: "name of the snapshot, an RDB file"},
		{Name: "appendonly", Group: groupDisk, Value: In(&c.AppendOnly, NewYesNo(false)), Mutable: true, Help: "log changes to the append-only file"},
		{Name: "appendfilename", Group: groupDisk, Value: In(&c.AppendFilename, NewText("appendonly.aof", "name", checkFilename)), Help: "name of the append-only file"},
		{Name: "appendfsync", Group: groupDisk, Value: In(&c.AppendFsync, newEnum("everysec", "always", "no")), Mutable: true, Help: "when changes must be on the disk: within a second, before the reply leaves, or when the system decides"},
		{Name: "auto-aof-rewrite-percentage", Group: groupDisk, Value: In(&c.RewritePercentage, NewInt(100, 0, math.MaxInt32, "percent")), Mutable: true, Help: "rewrite the append-only file when it has grown by this much; 0: never"},
		{Name: "auto-aof-rewrite-min-size", Group: groupDisk, Value: In(&c.RewriteMinSize, NewSize(64<<20, 0)), Mutable: true, Help: "do not rewrite an append-only file that is smaller than this"},
		{Name: "aof-load-truncated", Group: groupDisk, Value: In(&c.LoadTruncated, NewYesNo(true)), Help: "cut off an incomplete command at the end of the append-only file; no: refuse to start"},

		{Name: "slowlog-log-slower-than", Group: groupLog, Value: In(&c.SlowlogSlowerThan, NewInt(10_000, -1, math.MaxInt64, "microseconds")), Mutable: true, Help: "record slower commands in SLOWLOG; 0: every command, -1: none"},
		{Name: "slowlog-max-len", Group: groupLog, Value: In(&c.SlowlogMaxLen, NewInt(128, 0, 1<<20, "n")), Mutable: true, Help: "entries that SLOWLOG keeps"},
		{Name: "latency-monitor-threshold", Group: groupLog, Value: In(&c.LatencyThreshold, NewInt(0, 0, math.MaxInt64, "ms")), Mutable: true, Help: "record in LATENCY what takes at least this long; 0: nothing"},
		{Name: "loglevel", Group: groupLog, Value: In(&c.LogLevel, newEnum("notice", "debug", "verbose", "warning")), Mutable: true, Help: "least important events to log"},
		{Name: "loglevel-file", Group: groupLog, Value: In(&c.LogLevelFile, NewText("", "path", CheckPath)), Help: "file that holds the loglevel; read again when it changes"},
		{Name: "watch", Group: groupLog, Value: In(&c.Watch, NewYesNo(true)), Help: "take up files that have changed: passwords, users, policies, certificates, the loglevel, Envoy's limits; no: only at SIGHUP"},
		{Name: "log-format", Group: groupLog, Value: In(&c.LogFormat, newEnum("text", "json")), Help: "text for people, json for machines; written to standard error"},
	}
	before := func(group string, rows []Setting) {
		at := slices.IndexFunc(c.rows, func(row Setting) bool { return row.Group == group })
		c.rows = slices.Insert(c.rows, at, rows...)
	}
	before(groupLimits, c.TLS.rows())
	for _, p := range parts {
		if p.Rows == nil {
			continue
		}
		rows := p.Rows(c)
		for i := range rows {
			rows[i].needs = p.Needs
		}
		before(groupDisk, rows)
	}
	for i := range c.rows {
		row := &c.rows[i]
		text := row.Value.String()
		if size, ok := row.Value.(*Param[int64]); ok && size.kind == "size" {
			text = sizeText(size.Get())
		}
		row.Default = cmp.Or(row.Default, text)
	}
	return c
}

// Scripts are the Rows of who runs scripts.
func Scripts(c *Config) []Setting {
	return []Setting{
		{Name: "lua-time-limit", Group: "Scripts", Value: In(&c.LuaTimeLimit, NewInt(5_000, 0, math.MaxInt32, "ms")), Mutable: true, Help: "how long a script may run before other clients get -BUSY and can end it with SCRIPT KILL; 0: they wait"},
	}
}

// Settings returns all rows, in the order of --help.
func (c *Config) Settings() []Setting { return c.rows }

// NoEviction reports whether new keys are refused when the store is full.
func (c *Config) NoEviction() bool { return c.MaxMemoryPolicy.Get() == "noeviction" }

// MaxMemoryText is MaxMemory as users write it, such as 64mb.
func (c *Config) MaxMemoryText() string { return sizeText(c.MaxMemory.Get()) }

// PlainTCP reports whether there is TCP without TLS.
func (c *Config) PlainTCP() bool {
	return c.Port.Get() != 0 || c.UnixSocket.Get() == "" && c.TLS.Port.Get() == 0
}

// Persistence returns the settings for files as options of persistence.New. Clock and Log are not set.
func (c *Config) Persistence() persistence.Options {
	return persistence.Options{
		Dir: c.Dir.Get(), DBFilename: c.DBFilename.Get(), AppendOnly: c.AppendOnly.Get(), AppendFilename: c.AppendFilename.Get(),
		Fsync: persistence.ParseFsync(c.AppendFsync.Get()), LoadTruncated: c.LoadTruncated.Get(),
		LockWait:          time.Duration(c.DirLockWait.Get()) * time.Second,
		SavePoints:        c.SavePoints,
		RewritePercentage: c.RewritePercentage.Get,
		RewriteMinSize:    c.RewriteMinSize.Get,
	}
}

// Load reads the files of certificates, passwords and the log level that the settings name, and those of parts. changed reports whether a
// setting was given. The error joins one for each that cannot be used.
func (c *Config) Load(changed func(name string) bool) (err error) {
	c.MaxMemoryFrom = "default"
	if changed("maxmemory") {
		c.MaxMemoryFrom = "setting"
	}
	for _, p := range c.parts {
		if p.Load != nil {
			err = errors.Join(err, p.Load(c, changed))
		}
	}
	return errors.Join(err, c.TLS.load(c.Doors()), c.loadLogLevel(changed), c.LoadPassword(changed))
}

// Check looks at the files that a start would use beside those that Load has read, as far as that can be done without writing. mistakes
// joins the user's own. faults joins one for each that the start would fail on, or that nobody could use the server by: a certificate that
// is not valid. The warnings are of what it lets pass, and somebody should mend.
func (c *Config) Check() (warnings []string, mistakes, faults error) {
	disk := c.Persistence()
	disk.Clock, disk.Log = time.Now().UnixNano, slog.New(slog.DiscardHandler)
	faults = persistence.New(memory.New(memory.Options{MaxKeys: 1, Journal: disk.AppendOnly}), disk).Check()
	faults = errors.Join(faults, c.checkCertificates(time.Now()))
	warnings = c.warnings()
	for _, p := range c.parts {
		if p.Check != nil {
			lines, wrong, fault := p.Check(c)
			warnings = append(warnings, lines...)
			mistakes, faults = errors.Join(mistakes, wrong), errors.Join(faults, fault)
		}
	}
	return warnings, mistakes, faults
}

// LoadPassword reads the password's file only, which is all that a client (celld ping) needs.
func (c *Config) LoadPassword(changed func(name string) bool) error {
	return c.LoadSecret("requirepass", "the password", c.RequirePassFile.Get(), changed)
}

// LoadSecret sets a setting from the file that its sister names, where that is set.
func (c *Config) LoadSecret(setting, what, path string, changed func(name string) bool) error {
	if path == "" {
		return nil
	}
	if changed(setting) {
		return fmt.Errorf("%s and %s-file are both set; give one", setting, setting)
	}
	text, err := ReadSecret(what, path, TrimEnd)
	if err != nil {
		return err
	}
	return c.Setting(setting).Value.Set(text)
}

// TrimEnd cuts off the line break that editors write.
func TrimEnd(text string) string { return strings.TrimRight(text, "\r\n") }

// ReadSecret returns what a file holds, without what trim cuts off.
func ReadSecret(what, path string, trim func(string) string) (string, error) {
	bytes, err := regular.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	text := trim(string(bytes))
	if text == "" {
		return "", fmt.Errorf("read %s: %s is empty", what, path)
	}
	return text, nil
}

// Setting returns the setting of a name in lower case, or nil.
func (c *Config) Setting(name string) *Setting {
	if i := slices.IndexFunc(c.rows, func(row Setting) bool { return row.Name == name }); i >= 0 {
		return &c.rows[i]
	}
	return nil
}

// CheckPath refuses an empty path, which a script gives when its variable is not set. A server without its password's file, for
// example, would admit everybody.
func CheckPath(text string) error {
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

// ParsePerm reads the mode of a socket file, in octal.
func ParsePerm(text string) (os.FileMode, error) {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o777 {
		return 0, errors.New("argument must be an octal mode such as 770")
	}
	return os.FileMode(n), nil
}

// Readable makes the check of a text that is to be read by parse.
func Readable[T any](parse func(text string) (T, error)) func(text string) error {
	return func(text string) error { _, err := parse(text); return err }
}

// SavePoints are those of the setting save.
func (c *Config) SavePoints() []persistence.SavePoint {
	points, _ := persistence.ParseSavePoints(c.Save.Get())
	return points
}
