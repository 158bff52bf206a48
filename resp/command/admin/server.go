package admin

import (
	"strconv"
	"strings"

	"celld/resp/command"
	"celld/resp/command/argument"
)

// info is INFO [section ...]. The words default, all and everything each name several sections.
func (f family) info(c *command.Call) {
	c.CountDecisions()
	var words []string
	for _, arg := range c.Args[1:] {
		words = append(words, strings.ToLower(string(arg)))
	}
	c.Text(f.server().Metrics.Info(c.NowNS, words...))
}

func serverTime(c *command.Call) {
	us := c.WallNS() / 1e3
	c.Array(2)
	c.String(strconv.FormatInt(us/1e6, 10))
	c.String(strconv.FormatInt(us%1e6, 10))
}

// role answers that this server is a master at offset 0 without replicas.
func role(c *command.Call) {
	c.Array(3)
	c.String("master")
	c.Int(0)
	c.Array(0)
}

// shutdownOptions are those of SHUTDOWN, which may be given twice.
var shutdownOptions = argument.Options{Flags: []string{"SAVE", "NOSAVE", "NOW", "FORCE", "ABORT"}, Refusal: argument.ErrSyntax,
	OneOf: [][]string{{"SAVE", "NOSAVE", "ABORT"}, {"NOW", "ABORT"}, {"FORCE", "ABORT"}}}

// shutdown stops the server as SIGTERM does, but without --shutdown-delay. If it must take a snapshot and cannot, the server goes on, as
// Redis does.
func (f family) shutdown(c *command.Call, own command.Connection) {
	given := map[string]bool{}
	text := shutdownOptions.Read(c.Args[1:], func(option string, _ []byte) string {
		given[option] = true
		return ""
	})
	srv := f.server()
	switch {
	case text != "":
	case given["ABORT"]:
		text = srv.abort(c, own)
	case srv.Life.Busy() && !given["NOSAVE"]:
		text = command.ErrBusy
	case given["SAVE"] && srv.Disk == nil:
		text = engineKeeps("SHUTDOWN SAVE")
	default:
		text = srv.end(own, given)
	}
	if text != "" {
		c.Error("%s", text)
	}
}

// abort is SHUTDOWN ABORT. It returns the text of an error, or "".
func (srv Server) abort(c *command.Call, own command.Connection) (text string) {
	if !srv.Life.AbortShutdown() {
		return ErrNoShutdown
	}
	srv.Log.Info("a client aborted the shutdown", "user", own.Client().User.Load().Name(), "client", own.Client().Addr)
	c.OK()
	return ""
}

// end stops the server, and closes the connection without a reply: as with Redis, the client sees that when all files are whole, so
// redis-cli SHUTDOWN && cp … has them. It returns the text of an error, or "".
func (srv Server) end(own command.Connection, given map[string]bool) (text string) {
	srv.Log.Info("a client asked for shutdown", "user", own.Client().User.Load().Name(), "client", own.Client().Addr)
	if !srv.Life.PrepareShutdown(given["SAVE"], given["NOSAVE"]) && !given["FORCE"] {
		return errShutdownSave
	}
	srv.Life.Shutdown(own.Client().Conn.Hold())
	own.CloseAfterReply()
	return ""
}
