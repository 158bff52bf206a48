// Package api serves limits as JSON over HTTP, for callers without a client of Redis.
//
//	POST /v1/take     CL.TAKE; with keys CL.MTAKE; with calls up to 128 of these
//	POST /v1/give     CL.GIVE
//	POST /v1/release  CL.RELEASE, and so /v1/renew and /v1/settle
//	GET  /v1/show/k   CL.SHOW
//	POST /throttle    CL.THROTTLE, in the shape of throttlecrab
//	GET  /v1/openapi.json
//
// A request becomes a call of package door, and its answer becomes JSON. So a limit counts in one way, and a new option of CL.TAKE is a
// field in take.go and a line in openapi.json.
package api
