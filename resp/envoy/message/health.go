package message

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Health is a grpc.health.v1.HealthCheckResponse, by its status.
type Health int

// The states of a service.
const (
	Serving        Health = 1
	NotServing     Health = 2
	ServiceUnknown Health = 3
)

// UnmarshalHealth reads a grpc.health.v1.HealthCheckRequest: the name of a service.
func UnmarshalHealth(data []byte) (service string, err error) {
	err = Each(data, func(f Field) error {
		if f.Is(1, protowire.BytesType) {
			return f.Text(&service)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read a HealthCheckRequest: %w", err)
	}
	return service, nil
}

// Marshal appends a HealthCheckResponse.
func (h Health) Marshal(b []byte) []byte { return appendVarint(b, 1, uint64(h)) }
