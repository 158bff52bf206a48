package door

import (
	"errors"
	"fmt"
	"strings"

	"celld/resp/client"
	"celld/resp/command"
	"celld/resp/command/argument"
	"celld/resp/command/decide"
	"celld/store"
	"celld/store/policy"
)

// Texts of errors that callers of every door are told: Redis 7's wording where Redis has one, as client code matches on it. Texts with a %s
// are filled in by the caller.
const (
	ErrBusy          = command.ErrBusy
	ErrCrossSlot     = "CROSSSLOT Keys in request don't hash to the same slot. Give them a common hash tag, such as {user}:a and {user}:b"
	ErrInternal      = "ERR internal error, the connection is closed"
	ErrMaxWaiters    = "ERR too many calls wait already (--max-waiters)"
	ErrNoPermCommand = "NOPERM this user has no permissions to run the '%s' command"
	ErrNoPermKey     = "NOPERM this user has no permissions to access one of the keys used as arguments"
	ErrStoreDown     = argument.ErrStoreDown
	ErrUnblocked     = "UNBLOCKED client unblocked via CLIENT UNBLOCK"

	errNoToken    = "NOAUTH the user default needs a password: set --http-token-file, and send the token" // of callers by HTTP
	errPolicyGone = "NOPOLICY the policy was removed while the call waited"
	errTwoLimits  = "ERR two limits differ only in count or burst: one needs a name, such as 100/1m,name=tokens"
	errStoreSent  = "STOREDOWN %s; the call may have been counted"
	errFlushAll   = "ERR with --store, FLUSHALL and FLUSHDB need --store-prefix, as the engine may hold others' keys"
)

// CallError is the error that a call from within the process was answered with, such as "LOADING Redis is loading the dataset in memory".
type CallError struct {
	Text  string
	cause error // what the store or the disk has said; nil: neither was asked
}

func (e *CallError) Error() string { return e.Text }
func (e *CallError) Unwrap() error { return e.cause }

// Code is the error's first word.
func (e *CallError) Code() string {
	code, _, _ := strings.Cut(e.Text, " ")
	return code
}

// errLoading and errBusy are what callers get while the server does not run their commands.
var (
	errLoading = &CallError{Text: "LOADING Redis is loading the dataset in memory"}
	errBusy    = &CallError{ErrBusy, ErrScriptBusy}
)

// Misconf is the error of a call whose changes the disk does not take; nil: it does.
func Misconf(cause error) *CallError {
	if cause == nil {
		return nil
	}
	return &CallError{fmt.Sprintf("MISCONF Errors writing to the AOF file: %s", cause), cause}
}

// Why a process decides nothing that a restart would mend: see Server.Decides.
var (
	ErrPanicked   = errors.New("a panic")
	ErrScriptBusy = errors.New("a script that takes too long")
)

// errPanicked is the error of a call whose decision has panicked.
var errPanicked error = &CallError{ErrInternal, ErrPanicked}

// ErrorOf is what the store has said of a request that was not decided, as the error of a call.
func ErrorOf(err error) error { return &CallError{StoreText(err), err} }

// StoreText is the text of what the store has refused.
func StoreText(err error) string {
	switch err {
	case store.ErrFull:
		return command.ErrOOM
	case store.ErrFullOfKeys:
		return command.ErrOOMKeys
	case store.ErrWrongType:
		return command.ErrWrongType
	case store.ErrTooManyLimits:
		return fmt.Sprintf(decide.ErrTooManyLimits, store.MaxLimits)
	case store.ErrTwoLimits:
		return errTwoLimits
	case policy.ErrNoPolicy:
		return errPolicyGone
	case store.ErrTooManyWaiters:
		return ErrMaxWaiters
	case client.ErrUnblocked:
		return ErrUnblocked
	case store.ErrBusy:
		return fmt.Sprintf(ErrStoreDown, err)
	case store.ErrCrossSlot:
		return ErrCrossSlot
	case store.ErrNoPrefix:
		return errFlushAll
	}
	down, engine := (*store.DownError)(nil), (*store.EngineError)(nil)
	switch {
	case errors.As(err, &down) && down.Sent:
		return fmt.Sprintf(errStoreSent, down.Cause)
	case errors.As(err, &down):
		return fmt.Sprintf(ErrStoreDown, down.Cause)
	case errors.As(err, &engine):
		return engine.Text
	}
	return "ERR " + err.Error()
}

// NotSent is an engine's error where nothing was to be stored yet.
func NotSent(err error) error {
	if down := (*store.DownError)(nil); errors.As(err, &down) {
		return &store.DownError{Cause: down.Cause}
	}
	return err
}
