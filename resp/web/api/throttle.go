package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"celld/resp/jsonbody"
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
	key, numbers, err := readThrottled(x.body.Bytes())
	if err != nil {
		notThrottled(w, http.StatusBadRequest, err)
		return
	}
	t, err := a.Door.Throttle(a.Caller(r), key, numbers)
	if err != nil {
		notThrottled(w, problemOf(err).Status, err)
		return
	}
	if !t.Limited {
		t.Retry = 0
	}
	writeJSON(w, http.StatusOK, fmt.Appendf(nil, `{"allowed":%v,"limit":%d,"remaining":%d,"reset_after":%d,"retry_after":%d}`,
		!t.Limited, t.Limit, t.Remaining, t.Reset, t.Retry))
}

func notThrottled(w http.ResponseWriter, status int, err error) {
	writeJSON(w, status, append(appendString([]byte(`{"error":`), err.Error()), '}'))
}

// readThrottled reads a body as the key and the numbers of CL.THROTTLE.
func readThrottled(body []byte) (key string, numbers [4]int64, err error) {
	var t throttled
	if err := jsonbody.Read(body, &t); err != nil {
		return "", numbers, err
	}
	if t.Key == nil {
		return "", numbers, errors.New("key: is missing")
	}
	one := int64(1)
	for i, f := range []struct {
		name  string
		n     *int64
		least int64
	}{{"max_burst", t.MaxBurst, 1}, {"count_per_period", t.Count, 1}, {"period", t.Period, 1}, {"quantity", cmp.Or(t.Quantity, &one), 0}} {
		if f.n == nil {
			return "", numbers, errors.New(f.name + ": is missing")
		}
		if *f.n < f.least {
			return "", numbers, fmt.Errorf("%s: expected %d or more", f.name, f.least)
		}
		numbers[i] = *f.n
	}
	numbers[0]--
	return *t.Key, numbers, nil
}
