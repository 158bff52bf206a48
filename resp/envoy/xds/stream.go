package xds

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"celld/resp/envoy/message"
)

// connectTime is how long a connection may take to be there.
const connectTime = 20 * time.Second

const path = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"

// stream is a call of gRPC with many messages in both directions, as
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md has them: five bytes before each, of which four are its length.
type stream struct {
	transport *http.Transport
	body      *io.PipeWriter
	answer    *http.Response
}

// open asks the server, and returns when it answers.
func (c *Client) open(ctx context.Context) (*stream, error) {
	s := &stream{transport: &http.Transport{Protocols: new(http.Protocols), DialContext: c.Dial, TLSHandshakeTimeout: connectTime,
		DisableCompression: true}}
	if c.Dial == nil {
		s.transport.DialContext = (&net.Dialer{Timeout: connectTime}).DialContext
	}
	scheme := "http"
	if c.TLS == nil {
		s.transport.Protocols.SetUnencryptedHTTP2(true)
	} else {
		config, err := c.TLS()
		if err != nil {
			return nil, err
		}
		scheme, s.transport.TLSClientConfig = "https", config
		s.transport.Protocols.SetHTTP2(true)
	}
	var reads io.Reader
	reads, s.body = io.Pipe()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, scheme+"://"+c.Server+path, reads)
	if err != nil {
		return nil, err
	}
	for name, values := range c.Headers {
		q.Header[name] = values
	}
	q.Header.Set("Content-Type", "application/grpc")
	q.Header.Set("Te", "trailers")
	context.AfterFunc(ctx, func() { s.body.CloseWithError(ctx.Err()) }) // net/http does not look at ctx while it waits for the body
	first := c.Ask
	go func() { _ = s.send(&first) }() // until somebody reads it, or the stream has ended
	if s.answer, err = s.transport.RoundTrip(q); err != nil {
		s.body.Close()
		s.transport.CloseIdleConnections()
		return nil, err
	}
	return s, nil
}

func (s *stream) close() {
	s.body.Close()
	s.answer.Body.Close()
	s.transport.CloseIdleConnections()
}

func (s *stream) send(ask *message.Subscription) error {
	data, err := ask.Marshal()
	if err != nil {
		return err
	}
	_, err = s.body.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(data))), data...))
	return err
}

// receive returns the next message, or why the stream has ended.
func (s *stream) receive(most int) ([]byte, error) {
	if s.answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s", s.answer.Status)
	}
	var head [5]byte
	_, err := io.ReadFull(s.answer.Body, head[:])
	size := int64(binary.BigEndian.Uint32(head[1:]))
	switch {
	case err == io.EOF:
		return nil, s.status()
	case err != nil:
		return nil, err
	case head[0] != 0:
		return nil, errors.New("the server compresses, which nobody has asked for")
	case size > int64(most):
		return nil, fmt.Errorf("a configuration has %d bytes, and %d may come: see --envoy-xds-max-message", size, most)
	}
	data := make([]byte, size)
	_, err = io.ReadFull(s.answer.Body, data)
	return data, err
}

// status is how the server has ended the stream.
func (s *stream) status() error {
	of := s.answer.Trailer
	if s.answer.Header.Get("Grpc-Status") != "" {
		of = s.answer.Header // there were no messages
	}
	text, err := url.PathUnescape(of.Get("Grpc-Message"))
	if err != nil || text == "" {
		text = "it says no reason"
	}
	return fmt.Errorf("the server has ended the stream with code %s: %.200s", of.Get("Grpc-Status"), text)
}
