package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"

	"github.com/redis/rueidis"

	"celld/store"
)

// refusals are the engine's errors that say that nothing was done, and may go away, by their beginning. rueidis has cut off an ERR.
var refusals = []struct{ prefix, cause string }{
	{"READONLY ", "the engine is a read-only replica"},
	{"LOADING ", "the engine is loading its data"},
	{"BUSY ", "the engine is busy with a script"},
	{"CLUSTERDOWN ", "the Cluster is down"},
	{"MASTERDOWN ", "the engine has lost its master"},
	{"NOREPLICAS ", "the engine has too few replicas to write"},
	{"TRYAGAIN ", causeMoving},
	{"MISCONF ", "the engine cannot write to its disk"},
	{"MOVED ", "the Cluster has moved the key"},
	{"ASK ", causeMoving},
	{"NOAUTH ", "the engine wants a password"},
	{"WRONGPASS ", "the engine refuses the password"},
	{"NOPERM ", "the engine's user lacks a permission"},
	{"The user executing the script can't ", "the engine's user lacks a permission"},
	{"ACL failure in script: ", "the engine's user lacks a permission"},
	{"DENIED ", "the engine is in protected mode"},
	{"max number of clients reached", "the engine has no room for a connection"},
}

const (
	causeTimeout = "the engine has not answered in time"
	causeAway    = "the engine cannot be reached"
	causeLost    = "the connection to the engine was lost"
	causeNoNode  = "no node of the Cluster has the key"
	causeMoving  = "the Cluster is moving the key"
)

// isMoving reports that keys of a request are on two masters for now, or one is nowhere: nothing was done.
func isMoving(err error) bool {
	down := (*DownError)(nil)
	return errors.As(err, &down) && down.Cause == causeMoving
}

// EngineError is another error of the engine's, with its code: ERR syntax error.
type EngineError struct{ Text string }

func (e *EngineError) Error() string { return e.Text }

// withCode puts back the ERR that rueidis has cut off. Codes are upper-case words.
func withCode(text string) string {
	if code, _, ok := strings.Cut(text, " "); ok && strings.ToUpper(code) == code {
		return text
	}
	return "ERR " + text
}

// classify turns an error of rueidis into a *DownError, store.ErrFull, store.ErrWrongType or, where callers are to be told what the
// engine says, an *EngineError.
func classify(err error) error {
	if err == nil || errors.As(err, new(*DownError)) || errors.As(err, new(*EngineError)) {
		return err
	}
	if reply, ok := rueidis.IsRedisErr(err); ok {
		text := unwrapped(reply.Error())
		for _, r := range refusals {
			if strings.HasPrefix(text, r.prefix) {
				return &DownError{Cause: r.cause}
			}
		}
		switch {
		case strings.HasPrefix(text, "OOM "):
			return store.ErrFull
		case strings.HasPrefix(text, "WRONGTYPE "):
			return store.ErrWrongType
		}
		return &EngineError{withCode(reply.Error())}
	}
	cause := causeOf(err)
	return &DownError{Cause: cause, Sent: cause != causeAway && cause != causeNoNode}
}

// causeOf says in a few words what an error is about. Its texts are those of DownErrors.
func causeOf(err error) string {
	if reply, ok := rueidis.IsRedisErr(err); ok {
		if e := (*DownError)(nil); errors.As(classify(err), &e) {
			return e.Cause
		}
		return "the engine answers " + reply.Error()
	}
	dial, network := (*dialError)(nil), net.Error(nil)
	switch {
	case errors.As(err, &dial):
		return causeAway
	case errors.Is(err, rueidis.ErrNoSlot):
		return causeNoNode
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return causeTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, rueidis.ErrClosing),
		errors.As(err, &network):
		return causeLost
	}
	return err.Error()
}

// unwrapped returns an error as the command gave it. Redis 6.2 puts the script before that of a command which a script has called:
// ERR Error running script (call to f_…): @user_script:1: WRONGTYPE …, and writes the line twice and a - for some.
func unwrapped(text string) string {
	inner, ok := strings.CutPrefix(text, "Error running script (call to f_")
	if !ok {
		return text
	}
	_, inner, _ = strings.Cut(inner, "): ")
	for strings.HasPrefix(inner, "@user_script:") {
		_, rest, ok := strings.Cut(inner[len("@user_script:"):], ": ")
		if !ok {
			break
		}
		inner = rest
	}
	return strings.TrimPrefix(inner, "-")
}

// isNoScript reports whether the engine does not know a script's digest. Nothing was done then.
func isNoScript(err error) bool {
	reply, ok := rueidis.IsRedisErr(err)
	return ok && strings.HasPrefix(reply.Error(), "NOSCRIPT ")
}

// isSyntaxError reports the error of a command with options that the engine does not know. It is for errors that are classified.
func isSyntaxError(err error) bool { return err != nil && err.Error() == "ERR syntax error" }
