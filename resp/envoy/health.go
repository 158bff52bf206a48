package envoy

import (
	"time"

	"celld/resp/envoy/grpc"
	"celld/resp/envoy/message"
)

// healthTime is how often the health is looked at for those who watch it.
const healthTime = 500 * time.Millisecond

// healthName is the service whose health is told, as envoyproxy/ratelimit names it. The empty name has the same health.
const healthName = "ratelimit"

// health tells gRPC's health protocol whether calls should come here:
// https://github.com/grpc/grpc/blob/master/doc/health-checking.md
type health struct {
	stats  *statistics
	unwell func() error
}

// state is the health of a service.
func (h *health) state(name string) message.Health {
	switch {
	case name != "" && name != healthName:
		return message.ServiceUnknown
	case h.unwell() != nil:
		return message.NotServing
	}
	return message.Serving
}

// check tells what is so now.
func (h *health) check(in, out []byte) ([]byte, error) {
	defer h.stats.methods[check].done(time.Now())
	name, err := message.UnmarshalHealth(in)
	if err != nil {
		return nil, grpc.Errorf(grpc.InvalidArgument, "%v", err)
	}
	state := h.state(name)
	if state == message.ServiceUnknown {
		return nil, grpc.Errorf(grpc.NotFound, "unknown service")
	}
	return state.Marshal(out), nil
}

// watch tells what is so now, and each change, also that at the end: before calls fail, the client knows that the server stops.
func (h *health) watch(in []byte, to *grpc.Sender) error {
	name, err := message.UnmarshalHealth(in)
	if err != nil {
		return grpc.Errorf(grpc.InvalidArgument, "%v", err)
	}
	tick := time.NewTicker(healthTime)
	defer tick.Stop()
	for was, ends := message.Health(-1), false; ; {
		if is := h.state(name); is != was {
			if err := to.Send(is.Marshal(nil)); err != nil {
				return err
			}
			was = is
		}
		if ends {
			return grpc.Errorf(grpc.Unavailable, "the server stops, or the connection is too old")
		}
		select {
		case <-tick.C:
		case <-to.Done():
			ends = true
		}
	}
}
