package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// address is what a URL says of an engine.
type address struct {
	Hosts  []string // host:port, each once; those of the Sentinels where Master is set. Of a unix socket: its path
	Unix   bool
	TLS    bool
	DB     int    // 0 where there are several hosts, as a Cluster has no other
	Master string // that Sentinels know; "": there are no Sentinels

	ServerName string // that certificates must have; "": the host's

	Username, Password                 string // "": none
	SentinelUsername, SentinelPassword string // of the Sentinels themselves
}

// ParseURL reads redis://[user[:password]@]host[:port][,host[:port]…][/database][?master=name], the same with rediss:// for TLS, or
// unix://[user[:password]@]/path[?db=n]. Several hosts are those of a Cluster or, with master, Sentinels. Options of Sentinels are
// sentinel-username and sentinel-password; that of rediss is server-name. The error is one line, and quotes nothing of the URL that could
// be a password.
//
// rueidis.ParseURL is not enough: it knows no list of hosts with ports, ignores unknown options, and its errors quote the password.
func ParseURL(text string) (address, error) {
	var a address
	rest, err := a.readScheme(text)
	if err != nil {
		return address{}, err
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if strings.Contains(text, "#") || !a.Unix && strings.Contains(path, "@") || strings.Contains(query, "@") {
		return address{}, errUnescaped
	}
	at := strings.LastIndexByte(authority, '@')
	if at >= 0 {
		err = a.readUser(authority[:at])
	}
	database := path
	if err == nil && a.Unix {
		database, err = "", a.readSocket(authority[at+1:], path)
	}
	if err == nil {
		err = a.readOptions(query, &database)
	}
	if err == nil && !a.Unix {
		err = a.readHosts(authority[at+1:])
	}
	if err == nil {
		err = a.readDatabase(database)
	}
	if err != nil {
		return address{}, err
	}
	return a, nil
}

// readScheme returns what is behind the scheme.
func (a *address) readScheme(text string) (rest string, err error) {
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case ok && scheme == "redis":
	case ok && scheme == "rediss":
		a.TLS = true
	case ok && (scheme == "unix" || scheme == "redis+unix"):
		a.Unix = true
	default:
		return "", errors.New("it must start with redis://, rediss:// or unix://, such as redis://10.0.0.7")
	}
	return rest, nil
}

func (a *address) readSocket(host, path string) error {
	if host != "" || path == "" {
		return errors.New("unix:// must be followed by the socket's path, which starts with /")
	}
	path, err := unescape("/" + path)
	a.Hosts = []string{path}
	return err
}

func (a *address) readHosts(text string) error {
	port := "6379"
	if a.Master != "" {
		port = "26379"
	}
	for i, host := range strings.Split(text, ",") {
		host, err := readHost(host, port)
		if err != nil {
			return fmt.Errorf("address %d: %w", i+1, err)
		}
		a.Hosts = append(a.Hosts, host)
	}
	return nil
}

func (a *address) readDatabase(text string) error {
	if text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return errors.New("the database, which follows the / behind the host, must be a number")
		}
		a.DB = int(n)
	}
	if a.DB != 0 && len(a.Hosts) > 1 && a.Master == "" {
		return errors.New("several addresses mean a Cluster, which has only database 0")
	}
	return nil
}

var errUnescaped = errors.New("a / ? # @ or % in the user or password must be written as %2F %3F %23 %40 or %25")

// unescape is for all parts. A + stays a +, unlike in web forms, as passwords may contain it.
func unescape(text string) (string, error) {
	text, err := url.PathUnescape(text)
	if err != nil {
		return "", errUnescaped
	}
	if strings.ContainsRune(text, 0) {
		return "", errors.New("it must not have a %00")
	}
	return text, nil
}

func (a *address) readUser(text string) (err error) {
	name, password, _ := strings.Cut(text, ":")
	if a.Username, err = unescape(name); err == nil {
		a.Password, err = unescape(password)
	}
	return err
}

func (a *address) readOptions(query string, database *string) error {
	if query == "" {
		return nil
	}
	options := map[string]*string{"master": &a.Master, "sentinel-username": &a.SentinelUsername, "sentinel-password": &a.SentinelPassword}
	if a.TLS {
		options["server-name"] = &a.ServerName
	}
	if a.Unix {
		options = map[string]*string{"db": database}
	}
	for _, option := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(option, "=")
		into := options[name]
		switch {
		case into == nil && a.Unix:
			return errors.New("the only option of unix:// is db")
		case into == nil:
			return errors.New("the options are master, sentinel-username, sentinel-password and, of rediss, server-name")
		case *into != "":
			return fmt.Errorf("the option %s is given twice", name)
		case value == "":
			return fmt.Errorf("the option %s has no value", name)
		}
		var err error
		if *into, err = unescape(value); err != nil {
			return err
		}
	}
	if a.Master == "" && a.SentinelUsername+a.SentinelPassword != "" {
		return errors.New("the options of Sentinels need master, the name that they know the master by")
	}
	return nil
}

// readHost returns host:port.
func readHost(text, port string) (string, error) {
	host := text
	if colon := strings.LastIndexByte(text, ':'); colon > strings.LastIndexByte(text, ']') {
		host, port = text[:colon], text[colon+1:]
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errors.New("the port must be a number from 1 to 65535")
	}
	inner, closed := strings.CutSuffix(host, "]")
	switch inner, opened := strings.CutPrefix(inner, "["); {
	case opened && closed:
		host, err := unescape(inner)
		if err != nil {
			return "", err
		}
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Is6() {
			return "", errors.New("what is in brackets must be an IPv6 address")
		}
		return net.JoinHostPort(host, port), nil
	case host == "":
		return "", errors.New("the host is missing")
	case strings.Contains(host, ":"):
		return "", errors.New("an IPv6 address must be in brackets, as in [::1]:6379")
	case strings.ContainsFunc(host, notInName):
		return "", errors.New("the host must be a name or an IP address")
	}
	return net.JoinHostPort(host, port), nil
}

// notInName reports bytes that are in no host's name. International names are written in Punycode.
func notInName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_')
}

// String is the URL without users and passwords, for logs.
func (a address) String() string {
	text, database := "redis://", "/"
	switch {
	case a.Unix:
		text, database = "unix://"+(&url.URL{Path: a.Hosts[0]}).EscapedPath(), "?db="
	case a.TLS:
		text = "rediss://"
	}
	if !a.Unix {
		text += strings.ReplaceAll(strings.Join(a.Hosts, ","), "%", "%25") // of an IPv6 zone
	}
	if a.DB != 0 {
		text += database + strconv.Itoa(a.DB)
	}
	if a.Master != "" {
		text += "?master=" + url.PathEscape(a.Master)
	}
	return text
}
