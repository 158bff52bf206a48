// Package jsonbody reads bodies of JSON, in which each field stands once. Its errors are one line, and say where the body is wrong. It
// knows no requests.
//
//	err := jsonbody.Read(text, &call, jsonbody.Strictly) // calls[3].cost: expected an integer, up to 9007199254740991
package jsonbody

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Strictly refuses fields that are not known.
var Strictly = json.RejectUnknownMembers(true)

// Expected is the error of a type that reads itself: what a field should be.
type Expected string

func (e Expected) Error() string { return "expected " + string(e) }

// Read reads a body.
func Read(text []byte, into any, options ...json.Options) error {
	err := json.Unmarshal(text, into, options...)
	syntax, semantic, expected := (*jsontext.SyntacticError)(nil), (*json.SemanticError)(nil), Expected("")
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		return fieldError(syntax.JSONPointer, "the field is given twice")
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON, at byte %d", syntax.ByteOffset)
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &semantic):
		return fieldError(semantic.JSONPointer, "an unknown field")
	case errors.As(err, &semantic) && errors.As(err, &expected):
		return fieldError(semantic.JSONPointer, expected.Error())
	case errors.As(err, &semantic):
		return fieldError(semantic.JSONPointer, Expected(kindOf(semantic)).Error())
	}
	return err
}

// kindOf is what a field should be.
func kindOf(err *json.SemanticError) string {
	switch kind := err.GoType.String(); {
	case strings.Contains(kind, "int64"):
		return "an integer, up to 9007199254740991"
	case strings.Contains(kind, "bool"):
		return "true or false"
	case strings.HasPrefix(kind, "[]"):
		return "a list"
	case kind == "string":
		return "a string"
	}
	return "an object"
}

// fieldError is what is wrong with a field, such as calls[3].limits[0].
func fieldError(at jsontext.Pointer, what string) error {
	var path strings.Builder
	for token := range at.Tokens() {
		if n, err := strconv.Atoi(token); err == nil {
			fmt.Fprintf(&path, "[%d]", n)
			continue
		}
		if path.Len() > 0 {
			path.WriteByte('.')
		}
		quoted := strconv.Quote(token)
		path.WriteString(quoted[1 : len(quoted)-1]) // a name may have line breaks
	}
	if path.Len() == 0 {
		return errors.New("the body: " + what)
	}
	return fmt.Errorf("%.200s: %s", path.String(), what)
}
