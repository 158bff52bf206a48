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
	token := s.token.Load()
	if token == nil {
		return true
	}
	given, isBasic := "", false
	if scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		given = strings.TrimSpace(rest)
	} else if _, given, isBasic = r.BasicAuth(); !isBasic {
		return false
	}
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], token[:]) == 1
}

// askForToken answers who is not admitted.
func askForToken(w http.ResponseWriter, _ *http.Request) {
	answers.Fail(w, http.StatusUnauthorized, "the token of --http-token-file is needed, as Bearer or as the password")
}

// byPerson serves a page that people and tools read.
func (s *site) byPerson(answer http.HandlerFunc) http.HandlerFunc {
	return s.unless(s.guard.Person, answer)
}

// byCaller serves a program.
func (s *site) byCaller(answer http.HandlerFunc) http.HandlerFunc {
	return s.unless(func(r *http.Request) string { return s.guard.Program(r) }, answer)
}

// unless serves requests for which there is no reason to refuse them.
func (s *site) unless(refuses func(*http.Request) (why string), answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if why := refuses(r); why != "" {
			s.refuse(w, r, why)
			return
		}
		answer(w, r)
	}
}

// refuse also warns: for a proxy that is not recognised as one, the refusal is an outage.
func (s *site) refuse(w http.ResponseWriter, r *http.Request, why string) {
	s.server.Door.WarnRefused(r.RemoteAddr, why)
	answers.Fail(w, http.StatusForbidden, why)
}
