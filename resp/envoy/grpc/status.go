package grpc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http2/hpack"
)

// Code says how a call ended, as gRPC numbers it: https://github.com/grpc/grpc/blob/master/doc/statuscodes.md
type Code uint8

// The codes that are used here.
const (
	OK                 Code = 0
	Unknown            Code = 2
	InvalidArgument    Code = 3
	NotFound           Code = 5
	ResourceExhausted  Code = 8
	FailedPrecondition Code = 9
	Unimplemented      Code = 12
	Internal           Code = 13
	Unavailable        Code = 14
)

var codeNames = [...]string{
	OK: "OK", Unknown: "UNKNOWN", InvalidArgument: "INVALID_ARGUMENT", NotFound: "NOT_FOUND", ResourceExhausted: "RESOURCE_EXHAUSTED",
	FailedPrecondition: "FAILED_PRECONDITION", Unimplemented: "UNIMPLEMENTED", Internal: "INTERNAL", Unavailable: "UNAVAILABLE",
}

func (c Code) String() string { return codeNames[c] }

// Error is why a call failed. Its text is told to the client.
type Error struct {
	Code Code
	Text string
}

func (e *Error) Error() string { return e.Code.String() + ": " + e.Text }

// Errorf makes an Error.
func Errorf(code Code, format string, args ...any) error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// ErrorOf is err as an Error: UNKNOWN if it is of another kind.
func ErrorOf(err error) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	return &Error{Unknown, err.Error()}
}

// The headers of each answer. They use no table, so that a block is the same for all connections and at any time.
var (
	answerHeaders = headerBlock(":status", "200", "content-type", "application/grpc")
	okTrailers    = headerBlock("grpc-status", "0")
)

// headerBlock encodes headers. The first one of an answer is :status.
func headerBlock(namesAndValues ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(namesAndValues); i += 2 {
		f := hpack.HeaderField{Name: namesAndValues[i], Value: namesAndValues[i+1]}
		f.Sensitive = f.Value != "200" // which keeps it out of the table
		_ = e.WriteField(f)            // a bytes.Buffer takes all
	}
	return b.Bytes()
}

// trailersOf are the trailers of a call that failed; with a status of HTTP, they are all of its answer.
func trailersOf(err error, httpStatus int) []byte {
	e := ErrorOf(err)
	status := []string{"grpc-status", strconv.Itoa(int(e.Code)), "grpc-message", escape(e.Text)}
	if httpStatus == 0 {
		return headerBlock(status...)
	}
	head := []string{":status", strconv.Itoa(httpStatus), "content-type", "application/grpc"}
	if e.Code == Unimplemented { // a client that compresses learns not to
		head = append(head, "grpc-accept-encoding", "identity")
	}
	return headerBlock(append(head, status...)...)
}

// escape writes what is not printable ASCII, and %, as percent and two hex digits. A header may not be longer than clients take.
func escape(text string) string {
	const most = 2 << 10
	var b strings.Builder
	for i, r := range text {
		if b.Len() > most {
			b.WriteString("...")
			break
		}
		if ' ' <= r && r <= '~' && r != '%' {
			b.WriteRune(r)
			continue
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		for _, c := range []byte(text[i : i+size]) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
