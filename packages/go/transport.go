package sluice

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// Transport is an [http.RoundTripper] that guards the calls of a client to models.
//
// Texts of requests and of answers, whole or streamed, are masked, and so are those in the errors of a
// vendor. A request or an answer that a guard rejects results in a response with status 403. An answer that
// cannot be read becomes an error in its format with status 502. A request that cannot be judged is not
// sent, and results in an error: [*UnguardedError] for a path in no known format.
type Transport struct {
	Guards HTTPGuards
	// Base is [http.DefaultTransport] if it is nil.
	Base http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	format, isGuarded, err := t.Guards.formatOf(request)
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	if !isGuarded {
		return base.RoundTrip(request)
	}
	guarded, refused, err := t.Guards.guardRequest(request, format)
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return refusedResponse(request, refused), nil
	}
	response, err := base.RoundTrip(guarded)
	if err != nil {
		return nil, err
	}
	return t.guardResponse(response, format)
}

func setRequestBody(request *http.Request, body []byte) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	request.Body, _ = open()
	request.GetBody = open
	request.ContentLength = int64(len(body))
	request.TransferEncoding = nil
	request.Trailer = nil
	setHeaderLength(request.Header, len(body))
}

func (t *Transport) guardResponse(response *http.Response, format Format) (*http.Response, error) {
	kind, err := answerKind(response.StatusCode, response.Header)
	if err == nil && kind == StreamMessage {
		var rewriter *Rewriter
		if rewriter, err = t.Guards.newAnswerRewriter(format, StreamMessage); err == nil {
			response.Body = &guardedStream{body: response.Body, rewriter: rewriter}
			response.ContentLength = -1
			response.Header.Del("Content-Length")
			return response, nil
		}
	}
	if err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	limit := MaxMessageBytes
	if kind == 0 {
		limit = maxErrorBytes
	}
	body, err := readAtMost(response.Body, limit)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	if kind == 0 {
		return withBody(response, t.Guards.guardError(response.Header, body)), nil
	}
	masked, refused, err := t.Guards.guardAnswer(format, body)
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return refusedResponse(response.Request, refused), nil
	}
	return withBody(response, masked), nil
}

func withBody(response *http.Response, body []byte) *http.Response {
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.TransferEncoding = nil
	setHeaderLength(response.Header, len(body))
	return response
}

func refusedResponse(request *http.Request, refused *refusal) *http.Response {
	response := &http.Response{
		Status:     strconv.Itoa(refused.status) + " " + http.StatusText(refused.status),
		StatusCode: refused.status,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Request:    request,
	}
	return withBody(response, refused.body)
}

// guardedStream is the body of a streamed answer.
type guardedStream struct {
	body     io.ReadCloser
	rewriter *Rewriter
	// mutex allows Close during Read, as bodies of responses do.
	mutex  sync.Mutex
	ready  []byte
	buffer [16 << 10]byte
	err    error
}

func (s *guardedStream) Read(out []byte) (int, error) {
	for len(s.ready) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		count, err := s.body.Read(s.buffer[:])
		s.ready, s.err = s.step(s.buffer[:count], err)
	}
	count := copy(out, s.ready)
	s.ready = s.ready[count:]
	return count, nil
}

// step returns what is ready after a piece, and the error that follows it.
func (s *guardedStream) step(piece []byte, err error) ([]byte, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	out, failed := s.rewriter.push(piece, err != nil)
	if failed == nil {
		return out, err
	}
	_ = s.body.Close()
	refused, failed := refuseAnswer(s.rewriter, failed)
	if failed != nil {
		return nil, failed
	}
	return refused.body, io.EOF
}

// Close closes the stream of the vendor.
func (s *guardedStream) Close() error {
	err := s.body.Close()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.rewriter.Close()
	return err
}
