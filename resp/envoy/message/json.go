package message

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"celld/resp/jsonbody"
)

// The JSON of protobuf (https://protobuf.dev/programming-guides/json/): names as the messages have them or in camel case, integers as
// numbers or texts, units by name or number. null is as if the field was not there.

type (
	jsonRequest struct {
		Domain      string           `json:"domain"`
		Descriptors []jsonDescriptor `json:"descriptors"`
		HitsAddend  jsonInteger      `json:"hitsAddend,case:ignore"`
	}
	jsonDescriptor struct {
		Entries []struct {
			Key   string `json:"key"`
			Value string `json:"value"`
		} `json:"entries"`
		Limit *struct {
			RequestsPerUnit jsonInteger `json:"requestsPerUnit,case:ignore"`
			Unit            jsonUnit    `json:"unit"`
		} `json:"limit"`
		HitsAddend     *jsonInteger `json:"hitsAddend,case:ignore"`
		IsNegativeHits bool         `json:"isNegativeHits,case:ignore"`
	}
)

// jsonInteger is not negative.
type jsonInteger uint64

// UnmarshalJSONFrom reads 3, 3.0, 3e0 or "3".
func (n *jsonInteger) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	return readToken(in, "an integer of 0 or more", func(kind jsontext.Kind, text string) bool {
		if whole, err := strconv.ParseUint(text, 10, 64); err == nil {
			*n = jsonInteger(whole)
			return true
		}
		decimal := text != "" && strings.Trim(text, "0123456789.eE+-") == "" && strings.IndexByte("+.", text[0]) < 0
		x, err := strconv.ParseFloat(text, 64)
		if !decimal || err != nil || x < 0 || x >= 1<<64 || x != math.Trunc(x) {
			return false
		}
		*n = jsonInteger(x)
		return true
	})
}

// jsonUnit is a unit by its name or number. The message of a request has no name for weeks; WEEK is accepted all the same.
type jsonUnit Unit

// UnmarshalJSONFrom reads "MINUTE" or 2.
func (u *jsonUnit) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	return readToken(in, "a unit, such as MINUTE", func(kind jsontext.Kind, text string) bool {
		if kind == '0' {
			n, err := strconv.ParseInt(text, 10, 32)
			*u = jsonUnit(n)
			return err == nil
		}
		for unit := range units {
			if text == units[unit].name {
				*u = jsonUnit(unit)
				return true
			}
		}
		return false
	})
}

// readToken reads a number or a text. null leaves the zero value.
func readToken(in *jsontext.Decoder, want string, read func(kind jsontext.Kind, text string) (ok bool)) error {
	token, err := in.ReadToken()
	if err != nil {
		return err
	}
	switch kind := token.Kind(); kind {
	case 'n':
		return nil
	case '0', '"':
		if read(kind, token.String()) {
			return nil
		}
	}
	return jsonbody.Expected(want)
}

// UnmarshalJSON reads a RateLimitRequest. The error says which field is wrong.
func UnmarshalJSON(data []byte) (*Request, error) {
	var in jsonRequest
	if err := jsonbody.Read(data, &in, jsonbody.Strictly); err != nil {
		return nil, err
	}
	if in.HitsAddend > math.MaxUint32 {
		return nil, errors.New("hitsAddend: expected 4294967295 at most")
	}
	q, entries := &Request{Domain: in.Domain, Hits: uint32(in.HitsAddend)}, 0
	for i := range in.Descriptors {
		from := &in.Descriptors[i]
		if entries += len(from.Entries); i == mostDescriptors || entries > mostEntries {
			return nil, errMany
		}
		d := Descriptor{Negative: from.IsNegativeHits, Hits: (*uint64)(from.HitsAddend)}
		for _, e := range from.Entries {
			d.Entries = append(d.Entries, Entry{e.Key, e.Value})
		}
		if l := from.Limit; l != nil {
			if l.RequestsPerUnit > math.MaxUint32 {
				return nil, fmt.Errorf("descriptors[%d].limit.requestsPerUnit: expected 4294967295 at most", i)
			}
			d.Limit = &Limit{Requests: uint32(l.RequestsPerUnit), Unit: Unit(l.Unit)}
		}
		q.Descriptors = append(q.Descriptors, d)
	}
	return q, nil
}

type (
	jsonResponse struct {
		OverallCode string         `json:"overallCode"`
		Statuses    []jsonStatus   `json:"statuses,omitempty"`
		Headers     []jsonHeader   `json:"responseHeadersToAdd,omitempty"`
		Metadata    map[string]any `json:"dynamicMetadata,omitempty"`
	}
	jsonStatus struct {
		Code               string     `json:"code"`
		CurrentLimit       *jsonLimit `json:"currentLimit,omitzero"`
		LimitRemaining     uint32     `json:"limitRemaining,omitzero"`
		DurationUntilReset string     `json:"durationUntilReset,omitempty"`
	}
	jsonLimit struct {
		RequestsPerUnit uint32 `json:"requestsPerUnit,omitzero"`
		Unit            string `json:"unit,omitempty"`
		Name            string `json:"name,omitempty"`
	}
	jsonHeader struct {
		Key   string `json:"key"`
		Value string `json:"value,omitempty"`
	}
)

// MarshalJSON writes a RateLimitResponse on one line.
func (r *Response) MarshalJSON() ([]byte, error) {
	out := jsonResponse{OverallCode: r.Code.String(), Metadata: r.Metadata}
	for i := range r.Statuses {
		from := &r.Statuses[i]
		s := jsonStatus{Code: from.Code.String(), LimitRemaining: from.Remaining}
		if l := from.Limit; l != nil {
			s.CurrentLimit = &jsonLimit{RequestsPerUnit: l.Requests, Name: l.Name}
			if l.Unit != Unknown {
				s.CurrentLimit.Unit = l.Unit.String()
			}
			s.DurationUntilReset = strconv.FormatInt(from.Reset, 10) + "s"
		}
		out.Statuses = append(out.Statuses, s)
	}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, jsonHeader{h.Name, h.Value})
	}
	var b bytes.Buffer
	err := json.MarshalWrite(&b, out, json.Deterministic(true))
	return b.Bytes(), err
}
