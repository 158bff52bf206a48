// Package answers writes what answers of the HTTP port have in common: errors as problems (RFC 9457), and the RateLimit fields
// (draft-ietf-httpapi-ratelimit-headers-11).
//
//	answers.Describe(w.Header(), &check, false)
//	answers.Fail(w, http.StatusNotFound, "no such page")
package answers
