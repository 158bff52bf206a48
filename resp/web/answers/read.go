package answers

import "net/http"

// Read answers requests for what is only read.
func Read(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			Fail(w, http.StatusMethodNotAllowed, "only GET and HEAD")
			return
		}
		answer(w, r)
	}
}
