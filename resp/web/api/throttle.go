package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"celld/resp/jsonbody"
	"celld/resp/wire"
)

// throttled is the body of /throttle. Other fields are ignored there, as its users know it.
type throttled struct {
	Key      *string `json:"key"`
	MaxBurst *int64  `json:"max_burst"`
	Count    *int64  `json:"count_per_period"`
	Period   *int64  `json:"period"`
	Quantity *int64  `json:"quantity"`
}

// throttle is POST /throttle, in the shape of throttlecrab 0.4.40 (src/transport/http.rs). There, max_burst is the most at one instant,
// which is one more than CL.THROTTLE's. The decision, reset_after and how seconds are rounded are CL.THROTTLE's.
func (a API) throttle(w http.ResponseWriter, r *http.Request, x *exchange) {
	words, err := readThrottled(x.body.Bytes())
	if err != nil {
		notThrottled(w, http.StatusBadRequest, err)
		return
	}
	x.commands = wire.AppendCommand(x.commands, words...)
	var numbers [5]int64
	if err = a.do(r, x); err == nil {
		numbers, err = x.five()
	}
	if err != nil {
		notThrottled(w, problemOf(err).Status, err)
		return
	}
	writeJSON(w, http.StatusOK, fmt.Appendf(nil, `{"allowed":%v,"limit":%d,"remaining":%d,"reset_after":%d,"retry_after":%d}`,
		numbers[0] == 0, numbers[1], numbers[2], numbers[4], retryOf(numbers)))
}

func notThrottled(w http.ResponseWriter, status int, err error) {
	writeJSON(w, status, append(appendString([]byte(`{"error":`), err.Error()), '}'))
}

// retryOf is 0 for a call that passes, and -1 for one that never will.
func retryOf(numbers [5]int64) int64 {
	if numbers[0] == 0 {
		return 0
	}
	return numbers[3]
}

func readThrottled(body []byte) (words []string, err error) {
	var t throttled
	if err := jsonbody.Read(body, &t); err != nil {
		return nil, err
	}
	if t.Key == nil {
		return nil, errors.New("key: is missing")
	}
	words = []string{"CL.THROTTLE", *t.Key}
	for _, f := range []struct {
		name string
		n    *int64
		less int64
	}{{"max_burst", t.MaxBurst, 1}, {"count_per_period", t.Count, 0}, {"period", t.Period, 0}} {
		if f.n == nil {
			return nil, errors.New(f.name + ": is missing")
		}
		if *f.n < 1 {
			return nil, errors.New(f.name + ": expected 1 or more")
		}
		words = append(words, strconv.FormatInt(*f.n-f.less, 10))
	}
	if t.Quantity != nil {
		if *t.Quantity < 0 {
			return nil, errors.New("quantity: expected 0 or more")
		}
		words = append(words, strconv.FormatInt(*t.Quantity, 10))
	}
	return words, nil
}

// five reads the reply of CL.THROTTLE.
func (r *replies) five() (numbers [5]int64, err error) {
	head, err := r.next()
	for i := 0; i < min(head.N, len(numbers)) && err == nil; i++ {
		numbers[i], err = r.integer()
	}
	return numbers, err
}
