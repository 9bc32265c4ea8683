package sluice

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// HTTPGuards judge messages of models in HTTP. They are used by [Transport] and by [Middleware]. A message
// that cannot be judged does not pass.
type HTTPGuards struct {
	// Request and Response judge requests and answers. Nothing is judged in one that is nil, but messages
	// that cannot be read do not pass either.
	Request, Response *Guards
	// UnguardedPaths are the paths that pass unchanged with any method, exactly as they are escaped in
	// the URL.
	UnguardedPaths []string
	// Formats has the formats of POST requests by the ends of their paths. It is [DefaultFormats] if nil.
	Formats map[string]Format
}

// DefaultFormats returns the formats by the ends of paths that are used if [HTTPGuards] have none.
func DefaultFormats() map[string]Format {
	return map[string]Format{
		"/chat/completions": Completions,
		"/v1/messages":      Messages,
		"/responses":        Responses,
		"/embeddings":       Embeddings,
	}
}

// maxErrorBytes is the size up to which errors of a vendor are read.
const maxErrorBytes = 1 << 20

const (
	rejectedRequest = "The request was rejected by a guard."
	rejectedAnswer  = "The answer was rejected by a guard."
	unreadableText  = "The message cannot be judged by the guards."
	hiddenError     = `{"error":{"message":"The vendor answered with an error that the guards do not let pass."}}`
)

// UnguardedError is a request in no format that the guards read.
type UnguardedError struct{ Method, Path string }

func (e *UnguardedError) Error() string {
	return fmt.Sprintf("sluice: %s %s is in no format that the guards read; add the path to UnguardedPaths "+
		"if it may pass", e.Method, e.Path)
}

var (
	errTooLarge   = errors.New("sluice: the message is too large to be judged")
	errCompressed = errors.New("sluice: the message is compressed, so that it cannot be judged")
)

var noGuards = sync.OnceValues(func() (*Guards, error) { return NewGuards() })

func orNoGuards(guards *Guards) (*Guards, error) {
	if guards != nil {
		return guards, nil
	}
	return noGuards()
}

// formatOf returns the format of a request, and false if its path is not guarded.
func (h *HTTPGuards) formatOf(request *http.Request) (format Format, isGuarded bool, err error) {
	path := request.URL.EscapedPath()
	if slices.Contains(h.UnguardedPaths, path) {
		return 0, false, nil
	}
	formats := h.Formats
	if formats == nil {
		formats = DefaultFormats()
	}
	if request.Method == http.MethodPost {
		// Of several ends that fit, the longest counts.
		longest := ""
		for end, each := range formats {
			if strings.HasSuffix(path, end) && len(end) >= len(longest) {
				longest, format = end, each
			}
		}
		if format != 0 {
			return format, true, nil
		}
	}
	return 0, false, &UnguardedError{request.Method, path}
}

// refusal is an answer of the guards in the place of a message.
type refusal struct {
	status int
	body   []byte
}

// guardRequest returns the request with masked texts, or the refusal of a guard. Its body is closed.
func (h *HTTPGuards) guardRequest(request *http.Request, format Format) (*http.Request, *refusal, error) {
	body, err := readRequest(request)
	if err != nil {
		return nil, nil, err
	}
	guards, err := orNoGuards(h.Request)
	if err != nil {
		return nil, nil, err
	}
	rewriter, err := guards.NewRewriter(format, RequestMessage)
	if err != nil {
		return nil, nil, err
	}
	defer rewriter.Close()
	masked, err := rewriter.End(body)
	var rejected *RejectedError
	if errors.As(err, &rejected) {
		text, err := rewriter.Fail(http.StatusForbidden, rejectedRequest)
		return nil, &refusal{http.StatusForbidden, text}, err
	}
	if err != nil {
		return nil, nil, err
	}
	guarded := request.Clone(request.Context())
	setRequestBody(guarded, masked)
	// Compressed answers cannot be read.
	guarded.Header.Set("Accept-Encoding", "identity")
	return guarded, nil, nil
}

func readRequest(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	defer request.Body.Close()
	if isEncoded(request.Header) {
		return nil, errCompressed
	}
	return readAtMost(request.Body, MaxMessageBytes)
}

func readAtMost(body io.Reader, limit int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = errTooLarge
	}
	return data, err
}

func isEncoded(header http.Header) bool {
	for _, each := range header.Values("Content-Encoding") {
		if !strings.EqualFold(strings.TrimSpace(each), "identity") {
			return true
		}
	}
	return false
}

// answerKind returns the kind of an answer, and 0 for an error of the vendor.
func answerKind(status int, header http.Header) (Kind, error) {
	if isEncoded(header) {
		return 0, errCompressed
	}
	if status >= 300 {
		return 0, nil
	}
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	switch {
	case err == nil && media == "text/event-stream":
		return StreamMessage, nil
	case err == nil && media == "application/json":
		return AnswerMessage, nil
	}
	return 0, fmt.Errorf("sluice: the answer has the type %q, which the guards cannot read",
		header.Get("Content-Type"))
}

// guardAnswer returns a whole answer with masked texts, or a refusal.
func (h *HTTPGuards) guardAnswer(format Format, body []byte) (masked []byte, refused *refusal, err error) {
	rewriter, err := h.newAnswerRewriter(format, AnswerMessage)
	if err != nil {
		return nil, nil, err
	}
	defer rewriter.Close()
	masked, err = rewriter.End(body)
	if err == nil {
		return masked, nil, nil
	}
	refused, err = refuseAnswer(rewriter, err)
	return nil, refused, err
}

func (h *HTTPGuards) newAnswerRewriter(format Format, kind Kind) (*Rewriter, error) {
	guards, err := orNoGuards(h.Response)
	if err != nil {
		return nil, err
	}
	return guards.NewRewriter(format, kind)
}

// refuseAnswer returns what ends an answer after an error of its rewriter.
func refuseAnswer(rewriter *Rewriter, failed error) (*refusal, error) {
	status, message := http.StatusBadGateway, unreadableText
	var rejected *RejectedError
	var unreadable *UnreadableError
	switch {
	case errors.As(failed, &rejected):
		status, message = http.StatusForbidden, rejectedAnswer
	case !errors.As(failed, &unreadable):
		return nil, failed
	}
	text, err := rewriter.Fail(status, message)
	return &refusal{status, text}, err
}

// guardError masks an error of the vendor, which may repeat texts of the request. It sets the type of
// what it returns.
func (h *HTTPGuards) guardError(header http.Header, body []byte) []byte {
	guards, err := orNoGuards(h.Response)
	if err == nil && len(body) == 0 {
		return body
	}
	media, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if err == nil {
		if value, errOfJSON := decodeJSON(body); errOfJSON == nil {
			if value, err = mapTexts(value, guards.maskText); err == nil {
				if body, err = encodeJSON(value); err == nil {
					return body
				}
			}
		} else if media == "text/plain" && !strings.ContainsAny(string(body), "{[\"") {
			if text, err := guards.maskText(string(body)); err == nil {
				return []byte(text)
			}
		}
	}
	header.Set("Content-Type", "application/json")
	return []byte(hiddenError)
}

// setHeaderLength gives a message with a new body the length of that.
func setHeaderLength(header http.Header, size int) {
	header.Del("Transfer-Encoding")
	header.Set("Content-Length", strconv.Itoa(size))
	// They describe the body as it was.
	for _, name := range []string{"Etag", "Content-Md5", "Digest", "Content-Digest", "Repr-Digest"} {
		header.Del(name)
	}
}

// errorBody is an error for the client of a middleware.
func errorBody(message string) []byte {
	body, _ := json.Marshal(map[string]any{"error": map[string]string{"message": message}})
	return body
}
