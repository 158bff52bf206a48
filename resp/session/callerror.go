package session

import (
	"errors"
	"strings"
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

// Why a process decides nothing that a restart would mend: see Server.Decides.
var (
	ErrPanicked   = errors.New("a panic")
	ErrScriptBusy = errors.New("a script that takes too long")
)

// errPanicked is the error of a call whose decision has panicked.
var errPanicked error = &CallError{errInternal, ErrPanicked}

// ErrorOf is what the store has said of a request that was not decided, as the error of a call.
func ErrorOf(err error) error { return &CallError{storeError(err), err} }
