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

// ErrBusy reports that too much waits for the engine already. Nothing was sent.
var ErrBusy = errors.New("too many calls wait for the engine")

// ErrLate is the error of what has waited too long to be sent.
var ErrLate = &DownError{Cause: CauseTimeout}

// ErrNoConnection is the error of what cannot be sent, as there has been no connection yet.
var ErrNoConnection = &DownError{Cause: "there is no connection to the engine"}

// ErrAnswer reports an answer that no script of celld gives.
var ErrAnswer = errors.New("the engine's answer is not one that celld's script gives")

// DownError reports that the engine has not decided.
type DownError struct {
	Cause string // one of the constants, where it is about one of these
	Sent  bool   // the call may have been counted
}

func (e *DownError) Error() string { return e.Cause }

// Unsent returns a DownError as that of a call which cannot have been counted, and any other error as it is.
func Unsent(err error) error {
	if down := (*DownError)(nil); errors.As(err, &down) && down.Sent {
		return &DownError{Cause: down.Cause}
	}
	return err
}

// What an EngineError may be, for errors.Is.
var (
	ErrNoScript    = errors.New("the engine does not know the script's digest")
	ErrSyntax      = errors.New("the engine does not know an option of a command")
	ErrUnknownType = errors.New("the engine does not know a type's name")
)

// refusals are the engine's errors that say that nothing was done, and may go away, by their beginning. rueidis has cut off an ERR.
var refusals = []struct{ prefix, cause string }{
	{"READONLY ", "the engine is a read-only replica"},
	{"LOADING ", "the engine is loading its data"},
	{"BUSY ", CauseBusy},
	{"CLUSTERDOWN ", "the Cluster is down"},
	{"MASTERDOWN ", "the engine has lost its master"},
	{"NOREPLICAS ", "the engine has too few replicas to write"},
	{"TRYAGAIN ", CauseMoving},
	{"MISCONF ", "the engine cannot write to its disk"},
	{"MOVED ", "the Cluster has moved the key"},
	{"ASK ", CauseMoving},
	{"NOAUTH ", "the engine wants a password"},
	{"WRONGPASS ", "the engine refuses the password"},
	{"NOPERM ", CauseNoRight},
	{"The user executing the script can't ", CauseNoRight},
	{"ACL failure in script: ", CauseNoRight},
	{"DENIED ", "the engine is in protected mode"},
	{"max number of clients reached", "the engine has no room for a connection"},
}

const (
	CauseTimeout = "the engine has not answered in time"
	CauseAway    = "the engine cannot be reached"
	CauseLost    = "the connection to the engine was lost"
	CauseNoNode  = "no node of the Cluster has the key"
	CauseMoving  = "the Cluster is moving the key"
	CauseBusy    = "the engine is busy with a script"
	CauseNoRight = "the engine's user lacks a permission"
)

// dialError is of a connection that was not made. Nothing was sent.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// Is reports whether an error is a DownError of this cause.
func Is(err error, cause string) bool {
	down := (*DownError)(nil)
	return errors.As(err, &down) && down.Cause == cause
}

// EngineError is another error of the engine's, with its code: ERR syntax error.
type EngineError struct {
	Text string
	is   error // one of the variables, where it is about one of these
}

func (e *EngineError) Error() string { return e.Text }

func (e *EngineError) Unwrap() error { return e.is }

// kinds are the errors of EngineErrors by their beginning. rueidis has cut off an ERR.
var kinds = []struct {
	prefix string
	is     error
}{{"NOSCRIPT ", ErrNoScript}, {"syntax error", ErrSyntax}, {"unknown type name", ErrUnknownType}}

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
		e := &EngineError{Text: withCode(reply.Error())}
		for _, k := range kinds {
			if strings.HasPrefix(text, k.prefix) {
				e.is = k.is
			}
		}
		return e
	}
	cause := causeOf(err)
	return &DownError{Cause: cause, Sent: cause != CauseAway && cause != CauseNoNode}
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
		return CauseAway
	case errors.Is(err, rueidis.ErrNoSlot):
		return CauseNoNode
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return CauseTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, rueidis.ErrClosing),
		errors.As(err, &network):
		return CauseLost
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
