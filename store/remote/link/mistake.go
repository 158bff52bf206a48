package link

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// mistakes are answers to the first commands of a connection that waiting does not mend. rueidis has cut off an ERR.
var mistakes = []struct{ prefix, why string }{
	{"WRONGPASS ", "the engine refuses the user or password"},
	{"NOAUTH ", "the engine wants a password"},
	{"AUTH ", "a password was given, and the engine has none"},
	{"invalid password", "the engine refuses the password"},
	{"Client sent AUTH", "a password was given, and the engine has none"},
	{"DB index is out of range", "the engine does not have that many databases"},
	{"SELECT is not allowed in cluster mode", "the engine is a Cluster, which has only database 0"},
	{"No such master with that name", "the Sentinels know no master of that name"},
	{"unknown command 'SENTINEL'", "?master= is for Sentinels, and it is not one"},
	{"unknown command `SENTINEL`", "?master= is for Sentinels, and it is not one"},
	{"This instance has cluster support disabled", "several addresses are for a Cluster, and it is not one; with Sentinels, add ?master="},
}

// mistake returns what is wrong with the settings, if an error of connecting shows it; else "".
func mistake(err error, a address) string {
	if err == nil {
		return ""
	}
	if a.Master != "" && rueidis.IsRedisNil(err) {
		return "the Sentinels know no master of that name"
	}
	if reply, ok := rueidis.IsRedisErr(err); ok {
		for _, m := range mistakes {
			if strings.HasPrefix(reply.Error(), m.prefix) {
				return m.why
			}
		}
		return ""
	}
	certificate, alert, record := (*tls.CertificateVerificationError)(nil), (*net.OpError)(nil), tls.RecordHeaderError{}
	switch {
	case errors.As(err, &certificate):
		return "celld refuses the engine's certificate: " + certificate.Err.Error()
	case errors.As(err, &alert) && alert.Op == "remote error": // an alert of TLS
		return "the engine refuses the connection: " + alert.Err.Error()
	case errors.As(err, &record):
		return "the engine does not speak TLS"
	}
	return ""
}

// itself says that the engine is a celld. It may even be this process, which would then call itself for ever.
const itself = "it is a celld, not a Redis or Valkey"

// isCelld reports whether an engine says that it is a celld.
func isCelld(c rueidis.Client) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	info, _ := c.Do(ctx, c.B().Info().Section("server").Build()).ToString()
	return parseInfo(info)["celld_version"] != ""
}

// reason is why the engine is away, for people. What Redis before 6 answers to HELLO quotes the password, which may be a word of another
// error, too.
func (l *Link) reason(err error) string {
	why := causeOf(err)
	switch dial := (*dialError)(nil); {
	case !errors.As(err, &dial):
	case !errors.Is(dial, context.DeadlineExceeded):
		why += ": " + dial.Error()
	case l.address.TLS: // a server without TLS waits for more of what it takes for a command
		why += ": it has not answered in time, and may not speak TLS"
	default:
		why += ": it has not answered in time"
	}
	for _, secret := range []string{*l.secret.Load(), l.address.Password, l.address.SentinelPassword} {
		if secret != "" {
			why = strings.NewReplacer("'"+secret+"'", "'(secret)'", "`"+secret+"`", "`(secret)`").Replace(why)
		}
	}
	return why
}
