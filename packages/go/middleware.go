package sluice

import (
	"errors"
	"net/http"
)

// Middleware returns a handler that guards the requests to next, and what next answers.
//
// Texts of requests and of answers, whole or streamed, are masked, and so are those in errors. A request
// that a guard rejects is answered 403, one that cannot be read 400, 413 or 415, and one in no known format
// 404. An answer of next that cannot be judged becomes an error with status 500, or the error event of a
// stream. Next must answer with the type application/json or text/event-stream, or with an error status.
func (h *HTTPGuards) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		format, isGuarded, err := h.formatOf(request)
		if err != nil {
			answer(writer, &refusal{http.StatusNotFound, errorBody(err.Error())})
			return
		}
		if !isGuarded {
			next.ServeHTTP(writer, request)
			return
		}
		guarded, refused, err := h.guardRequest(request, format)
		if err != nil {
			refused = refuseRequest(err)
		}
		if refused != nil {
			answer(writer, refused)
			return
		}
		guardedWriter := &guardedWriter{guards: h, format: format, out: writer, header: http.Header{}}
		defer guardedWriter.close()
		next.ServeHTTP(guardedWriter, guarded)
		// If next panics, the server closes the connection.
		guardedWriter.finish()
	})
}

func refuseRequest(err error) *refusal {
	status := http.StatusInternalServerError
	var unreadable *UnreadableError
	switch {
	case errors.Is(err, errTooLarge):
		status = http.StatusRequestEntityTooLarge
	case errors.Is(err, errCompressed):
		status = http.StatusUnsupportedMediaType
	case errors.As(err, &unreadable):
		status = http.StatusBadRequest
	}
	return &refusal{status, errorBody(err.Error())}
}

func answer(writer http.ResponseWriter, refused *refusal) {
	writer.Header().Set("Content-Type", "application/json")
	setHeaderLength(writer.Header(), len(refused.body))
	writer.WriteHeader(refused.status)
	_, _ = writer.Write(refused.body)
}

// guardedWriter holds an answer until it is judged, and forwards a stream event by event.
type guardedWriter struct {
	guards *HTTPGuards
	format Format
	out    http.ResponseWriter
	// header is that of the answer; out gets it once the answer is judged.
	header http.Header
	status int
	kind   Kind
	body   []byte
	// stream is the rewriter of a streamed answer.
	stream *Rewriter
	// err says why the rest of the answer does not pass.
	err error
}

func (w *guardedWriter) Header() http.Header { return w.header }

func (w *guardedWriter) WriteHeader(status int) {
	if status < 200 && status != http.StatusSwitchingProtocols {
		w.out.WriteHeader(status)
		return
	}
	if w.status != 0 {
		return
	}
	w.status = status
	if w.kind, w.err = answerKind(status, w.header); w.err != nil || w.kind != StreamMessage {
		return
	}
	if w.stream, w.err = w.guards.newAnswerRewriter(w.format, StreamMessage); w.err != nil {
		return
	}
	w.header.Del("Content-Length")
	w.copyHeader()
	w.out.WriteHeader(status)
}

func (w *guardedWriter) Write(piece []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.err != nil {
		return 0, w.err
	}
	if w.stream != nil {
		if w.push(piece, false); w.err != nil {
			return 0, w.err
		}
		return len(piece), nil
	}
	limit := MaxMessageBytes
	if w.kind == 0 {
		limit = maxErrorBytes
	}
	if len(w.body)+len(piece) > limit {
		w.err = errTooLarge
		return 0, w.err
	}
	w.body = append(w.body, piece...)
	return len(piece), nil
}

// push forwards what a piece of a stream makes ready.
func (w *guardedWriter) push(piece []byte, isEnd bool) {
	out, err := w.stream.push(piece, isEnd)
	if err != nil {
		w.err = err
		refused, err := refuseAnswer(w.stream, err)
		if err != nil {
			return
		}
		out = refused.body
	}
	if len(out) > 0 {
		if _, err := w.out.Write(out); err != nil && w.err == nil {
			w.err = err
		}
	}
}

// FlushError sends the events of a stream that are ready. Answers of other kinds are held.
func (w *guardedWriter) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.stream == nil {
		return nil
	}
	return http.NewResponseController(w.out).Flush()
}

// Flush is FlushError for handlers that know [http.Flusher].
func (w *guardedWriter) Flush() { _ = w.FlushError() }

// finish sends what is held when the handler has returned.
func (w *guardedWriter) finish() {
	switch {
	case w.stream != nil:
		if w.err == nil {
			w.push(nil, true)
		}
		return
	case w.status == 0:
		// An empty answer.
		w.status = http.StatusOK
	case w.err == nil && w.kind == 0:
		w.body = w.guards.guardError(w.header, w.body)
	case w.err == nil:
		masked, refused, err := w.guards.guardAnswer(w.format, w.body)
		if refused != nil && err == nil {
			answer(w.out, refused)
			return
		}
		w.body, w.err = masked, err
	}
	if w.err != nil {
		answer(w.out, &refusal{http.StatusInternalServerError, errorBody(w.err.Error())})
		return
	}
	w.copyHeader()
	setHeaderLength(w.out.Header(), len(w.body))
	w.out.WriteHeader(w.status)
	_, _ = w.out.Write(w.body)
}

func (w *guardedWriter) copyHeader() {
	for name, values := range w.header {
		w.out.Header()[name] = values
	}
}

func (w *guardedWriter) close() {
	if w.stream != nil {
		w.stream.Close()
	}
}
