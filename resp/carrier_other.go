//go:build !linux

package resp

func newCarrier(srv *Server) (carrier, error) { return &goroutineCarrier{srv: srv}, nil }

const multiplexing = "go"
