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
	token, err := in.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case 'n':
		*n = 0
		return nil
	case '0', '"':
		text := token.String()
		if whole, err := strconv.ParseUint(text, 10, 64); err == nil {
			*n = jsonInteger(whole)
			return nil
		}
		decimal := text != "" && strings.Trim(text, "0123456789.eE+-") == "" && strings.IndexByte("+.", text[0]) < 0
		if x, err := strconv.ParseFloat(text, 64); decimal && err == nil && x >= 0 && x < 1<<64 && x == math.Trunc(x) {
			*n = jsonInteger(x)
			return nil
		}
	}
	return errors.New("expected an integer of 0 or more")
}

// jsonUnit is a unit by its name or number. The message of a request has no name for weeks; WEEK is accepted all the same.
type jsonUnit Unit

// UnmarshalJSONFrom reads "MINUTE" or 2.
func (u *jsonUnit) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	token, err := in.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case 'n':
		*u = jsonUnit(Unknown)
		return nil
	case '0':
		n, err := strconv.ParseInt(token.String(), 10, 32)
		if err == nil {
			*u = jsonUnit(n)
			return nil
		}
	case '"':
		for unit := range units {
			if token.String() == units[unit].name {
				*u = jsonUnit(unit)
				return nil
			}
		}
	}
	return errors.New("expected a unit, such as MINUTE")
}

// UnmarshalJSON reads a RateLimitRequest. The error says which field is wrong.
func UnmarshalJSON(data []byte) (*Request, error) {
	var in jsonRequest
	if err := json.Unmarshal(data, &in, json.RejectUnknownMembers(true)); err != nil {
		return nil, readError(err)
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

// readError says in a line what is wrong with a body.
func readError(err error) error {
	syntax, semantic := (*jsontext.SyntacticError)(nil), (*json.SemanticError)(nil)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		return fmt.Errorf("%s: the field is given twice", place(syntax.JSONPointer))
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON, at byte %d", syntax.ByteOffset)
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &semantic):
		return fmt.Errorf("%s: an unknown field", place(semantic.JSONPointer))
	case errors.As(err, &semantic) && semantic.Err != nil:
		return fmt.Errorf("%s: %w", place(semantic.JSONPointer), semantic.Err)
	case errors.As(err, &semantic):
		return fmt.Errorf("%s: expected a value of another kind", place(semantic.JSONPointer))
	}
	return err
}

// place is where in a body something is wrong, on a line of its own. The body has its names.
func place(at jsontext.Pointer) string {
	quoted := strconv.Quote(string(at[:min(len(at), 200)]))
	return quoted[1 : len(quoted)-1]
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
