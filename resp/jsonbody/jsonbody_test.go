package jsonbody

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// even reads itself.
type even bool

func (*even) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	if err := in.SkipValue(); err != nil {
		return err
	}
	return Expected("an even number")
}

func TestRead(t *testing.T) {
	type call struct {
		Name  string   `json:"name"`
		N     *int64   `json:"n"`
		Yes   bool     `json:"yes"`
		Words []string `json:"words"`
		Even  *even    `json:"even"`
		Calls []call   `json:"calls"`
	}
	for text, want := range map[string]string{
		`{"name":"a","n":1,"yes":true,"words":["b"],"calls":[{}]}`: "",

		``:                          "not JSON, at byte 0",
		`{"name":`:                  "not JSON, at byte 8",
		`[]`:                        "the body: expected an object",
		`{"name":1}`:                "name: expected a string",
		`{"n":1.5}`:                 "n: expected an integer, up to 9007199254740991",
		`{"yes":1}`:                 "yes: expected true or false",
		`{"words":{}}`:              "words: expected a list",
		`{"words":["a",1]}`:         "words[1]: expected a string",
		`{"calls":[{},{"even":3}]}`: "calls[1].even: expected an even number",
		`{"calls":[{"name":1}]}`:    "calls[0].name: expected a string",
		`{"calls":[{"nosuch":1}]}`:  "calls[0].nosuch: an unknown field",
		`{"name":"a","name":"b"}`:   "name: the field is given twice",
		`{"a\nb":1}`:                `a\nb: an unknown field`,
		`{"` + long + `":1}`:        long[:200] + ": an unknown field",
	} {
		var c call
		got := ""
		if err := Read([]byte(text), &c, Strictly); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.60s: got %q, want %q", text, got, want)
		}
	}
	if err := Read([]byte(`{"nosuch":1}`), &call{}); err != nil {
		t.Errorf("not strictly: %v", err)
	}
}

var long = strings.Repeat("x", 300)
