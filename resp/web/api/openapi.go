package api

import (
	_ "embed"
	"net/http"
)

// openapi describes these paths, by OpenAPI 3.1. A test compares it with the answers.
//
//go:embed openapi.json
var openapi []byte

// describe is GET /v1/openapi.json.
func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(openapi)
}
