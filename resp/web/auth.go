package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"celld/resp/web/answers"
)

// admitted reports whether a request has the token, as Bearer or as the password of any user. It takes as long for each wrong one.
func (s *site) admitted(r *http.Request) bool {
	if s.token == nil {
		return true
	}
	given, isBasic := "", false
	if scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		given = strings.TrimSpace(rest)
	} else if _, given, isBasic = r.BasicAuth(); !isBasic {
		return false
	}
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1
}

// askForToken answers who is not admitted.
func askForToken(w http.ResponseWriter, _ *http.Request) {
	answers.Fail(w, http.StatusUnauthorized, "the token of --http-token-file is needed, as Bearer or as the password")
}
