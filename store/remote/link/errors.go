package link

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

// Errors that callers know: see package store.
type (
	DownError   = store.DownError
	EngineError = store.EngineError
)

var (
	ErrBusy      = store.ErrBusy
	ErrCrossSlot = store.ErrCrossSlot
)

// ErrLate is the error of a request that has waited too long to be sent.
var ErrLate = &DownError{Cause: CauseTimeout}

// ErrNoConnection is the error of a request that cannot be sent, as there has been no connection yet.
var ErrNoConnection = &DownError{Cause: "there is no connection to the engine"}

// ErrAnswer reports an answer that no script of celld gives.
var ErrAnswer = errors.New("the engine's answer is not one that celld's script gives")

// Unsent returns a DownError as that of a call which cannot have been counted, and any other error as it is.
func Unsent(err error) error {
	if down := (*DownError)(nil); errors.As(err, &down) && down.Sent {
		return &DownError{Cause: down.Cause}
	}
	return err
}

// Kinds of EngineErrors, for errors.Is.
var (
	errNoScript    = errors.New("the engine does not know the script's digest")
	ErrSyntax      = errors.New("the engine does not know an option of a command")
	ErrUnknownType = errors.New("the engine does not know a type's name")

	ErrUnknownCommand = errors.New("the engine does not know a command")
)

// refusals are errors of the engine by their beginning, which say that nothing was done, and may go away. rueidis has cut off an ERR.
var refusals = []struct{ prefix, cause string }{
	{"READONLY ", "the engine is a read-only replica"},
	{"LOADING ", "the engine is loading its data"},
	{"BUSY ", causeBusy},
	{"CLUSTERDOWN ", "the Cluster is down"},
	{"MASTERDOWN ", "the engine has lost its master"},
	{"NOREPLICAS ", "the engine has too few replicas to write"},
	{"TRYAGAIN ", CauseMoving},
	{"MISCONF ", "the engine cannot write to its disk"},
	{"MOVED ", "the Cluster has moved the key"},
	{"ASK ", CauseMoving},
	{"NOAUTH ", "the engine wants a password"},
	{"WRONGPASS ", "the engine refuses the password"},
	{"NOPERM ", causeNoRight},
	{"The user executing the script can't ", causeNoRight},
	{"ACL failure in script: ", causeNoRight},
	{"DENIED ", "the engine is in protected mode"},
	{"max number of clients reached", "the engine has no room for a connection"},
}

// Causes of DownErrors.
const (
	CauseTimeout = "the engine has not answered in time"
	causeAway    = "the engine cannot be reached"
	causeLost    = "the connection to the engine was lost"
	causeNoNode  = "no node of the Cluster has the key"
	CauseMoving  = "the Cluster is moving the key"
	causeMoved   = "the Cluster was moving the key"
	causeBusy    = "the engine is busy with a script"
	causeNoRight = "the engine's user lacks a permission"
)

// dialError is of a connection that was not made. Nothing was sent.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// Is reports whether an error is a DownError of this cause, whatever the engine adds to it.
func Is(err error, cause string) bool {
	down := (*DownError)(nil)
	return errors.As(err, &down) && strings.HasPrefix(down.Cause, cause)
}

// kinds are the errors of EngineErrors by their beginning. rueidis has cut off an ERR.
var kinds = []struct {
	prefix string
	is     error
}{{"NOSCRIPT ", errNoScript}, {"syntax error", ErrSyntax}, {"unknown type name", ErrUnknownType},
	{"unknown command", ErrUnknownCommand}}

// withCode puts back the ERR that rueidis has cut off. Codes are upper-case words.
func withCode(text string) string {
	if code, _, ok := strings.Cut(text, " "); ok && strings.ToUpper(code) == code {
		return text
	}
	return "ERR " + text
}

// Classify turns an error of rueidis into a *DownError, store.ErrFull, store.ErrWrongType or, where callers are to be told what the
// engine says, an *EngineError.
func Classify(err error) error {
	if err == nil || errors.As(err, new(*DownError)) || errors.As(err, new(*EngineError)) {
		return err
	}
	if reply, ok := rueidis.IsRedisErr(err); ok {
		text := unwrapped(reply.Error())
		for _, r := range refusals {
			if !strings.HasPrefix(text, r.prefix) {
				continue
			}
			if r.cause == causeNoRight { // the engine names the command or the key
				return &DownError{Cause: r.cause + ": " + strings.TrimPrefix(text, "NOPERM ")}
			}
			return &DownError{Cause: r.cause}
		}
		switch {
		// Redis says this in the middle of a script when a slot moves, and Valkey 9.1 in other words. What the script has written until
		// then stays.
		case strings.HasPrefix(text, "Script attempted to access a non local key"),
			strings.HasPrefix(text, "Attempted to access a non local key"):
			return &DownError{Cause: causeMoved, Sent: true}
		case strings.HasPrefix(text, "OOM "):
			return store.ErrFull
		case strings.HasPrefix(text, "WRONGTYPE "):
			return store.ErrWrongType
		}
		e := &EngineError{Text: withCode(reply.Error())}
		for _, k := range kinds {
			if strings.HasPrefix(text, k.prefix) {
				e.Kind = k.is
			}
		}
		return e
	}
	cause := causeOf(err)
	return &DownError{Cause: cause, Sent: cause != causeAway && cause != causeNoNode}
}

// causeOf says in a few words what an error is about. Its texts are those of DownErrors.
func causeOf(err error) string {
	if reply, ok := rueidis.IsRedisErr(err); ok {
		if e := (*DownError)(nil); errors.As(Classify(err), &e) {
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
		return CauseTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, net.ErrClosed),
		errors.Is(err, rueidis.ErrClosing), errors.As(err, &network):
		return causeLost
	}
	return err.Error()
}

// unwrapped returns an error as the command gave it. If a script called the command, Redis 6.2 puts the script before the error:
// ERR Error running script (call to f_…): @user_script:1: WRONGTYPE …. For some errors it writes the line twice, and a -.
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
