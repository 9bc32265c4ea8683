package sluice_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice"
)

func withoutTime(_ []string, attr slog.Attr) slog.Attr {
	if attr.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return attr
}

type chat struct {
	Messages []struct{ Role, Content string }
	Stream   bool
}

// repeatMessage is a model that answers with the last message, whole or one character an event. "_AT_"
// becomes "@", so that a test can tell texts of answers from texts of requests.
func repeatMessage(writer http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/v1/models" {
		writer.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(writer, `{"data": []}`)
		return
	}
	var body chat
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
		http.Error(writer, "no messages", http.StatusBadRequest)
		return
	}
	text := strings.ReplaceAll(body.Messages[len(body.Messages)-1].Content, "_AT_", "@")
	failed, isError := strings.CutPrefix(text, "fail ")
	switch {
	case isError:
		media, failed, _ := strings.Cut(failed, " ")
		writer.Header().Set("Content-Type", media)
		writer.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(writer, failed)
	case body.Stream:
		writer.Header().Set("Content-Type", "text/event-stream")
		for _, each := range text {
			delta, _ := json.Marshal(string(each))
			fmt.Fprintf(writer, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", delta)
			_ = http.NewResponseController(writer).Flush()
		}
		_, _ = io.WriteString(writer, "data: [DONE]\n\n")
	default:
		writer.Header().Set("Content-Type", "application/json")
		if text == "garbage" {
			_, _ = io.WriteString(writer, `{"choices": [`)
			return
		}
		fmt.Fprintf(writer, `{"choices":[{"index":0,"message":{"role":"assistant","content":%q}}]}`, text)
	}
}

var (
	masking   = sluice.MustGuards(sluice.Guard{Rules: []sluice.Matcher{sluice.Email}})
	rejecting = sluice.MustGuards(sluice.Guard{Rules: []sluice.Matcher{sluice.Rule{Pattern: "forbidden"}}, Rejects: true})
)

// hosts runs a test with the guards in a client and in a server. Call sends a message through the guards
// and returns the status and the body; sent returns the body that the model got last.
func hosts(t *testing.T, guards sluice.HTTPGuards,
	test func(t *testing.T, call func(method, path, body string) (int, string, error), sent func() string)) {
	for _, side := range []string{"client", "server"} {
		t.Run(side, func(t *testing.T) {
			var last string
			model := http.Handler(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
				body, _ := io.ReadAll(request.Body)
				last = string(body)
				request.Body = io.NopCloser(bytes.NewReader(body))
				repeatMessage(writer, request)
			}))
			client := &http.Client{}
			if side == "client" {
				client.Transport = &sluice.Transport{HTTPGuards: guards}
			} else {
				model = guards.Middleware(model)
			}
			server := httptest.NewServer(model)
			defer server.Close()
			test(t, func(method, path, body string) (int, string, error) {
				request, _ := http.NewRequest(method, server.URL+path, strings.NewReader(body))
				response, err := client.Do(request)
				if err != nil {
					return 0, "", err
				}
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				return response.StatusCode, string(text), err
			}, func() string { return last })
		})
	}
}

const completions = "/v1/chat/completions"

func chatOf(text string, stream bool) string {
	body, _ := json.Marshal(map[string]any{
		"messages": []any{map[string]string{"role": "user", "content": text}}, "stream": stream,
	})
	return string(body)
}

// deltas joins the texts of a stream.
func deltas(body string) (text string) {
	for line := range strings.Lines(body) {
		var event struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		data, isData := strings.CutPrefix(line, "data: {")
		if isData && json.Unmarshal([]byte("{"+data), &event) == nil {
			for _, choice := range event.Choices {
				text += choice.Delta.Content
			}
		}
	}
	return text
}

func TestMasksRequestsAndAnswers(t *testing.T) {
	guards := sluice.HTTPGuards{Request: masking, Response: masking}
	hosts(t, guards, func(t *testing.T, call func(string, string, string) (int, string, error), sent func() string) {
		status, body, err := call("POST", completions, chatOf("ada@example.com bob_AT_example.com", false))
		if status != 200 || err != nil || strings.Contains(body, "@") || strings.Count(body, "<EMAIL_ADDRESS>") != 2 {
			t.Error(status, body, err)
		}
		if strings.Contains(sent(), "@") || !strings.Contains(sent(), "<EMAIL_ADDRESS>") {
			t.Error(sent())
		}
		status, body, err = call("POST", completions, chatOf("to bob_AT_example.com now", true))
		if status != 200 || err != nil || deltas(body) != "to <EMAIL_ADDRESS> now" || !strings.HasSuffix(body, "[DONE]\n\n") {
			t.Error(status, body, err)
		}
	})
}

func TestRejects(t *testing.T) {
	both := sluice.HTTPGuards{Request: rejecting, Response: rejecting}
	hosts(t, both, func(t *testing.T, call func(string, string, string) (int, string, error), sent func() string) {
		if status, body, err := call("POST", completions, chatOf("forbidden", false)); status != 403 || err != nil {
			t.Error(status, body, err)
		}
		if sent() != "" {
			t.Error("the model got", sent())
		}
	})
	answers := sluice.HTTPGuards{Response: rejecting}
	hosts(t, answers, func(t *testing.T, call func(string, string, string) (int, string, error), _ func() string) {
		status, body, err := call("POST", completions, chatOf("say forbidden", false))
		if status != 403 || err != nil || strings.Contains(body, "forbidden") {
			t.Error(status, body, err)
		}
		status, body, err = call("POST", completions, chatOf("say forbidden", true))
		if status != 200 || err != nil || strings.Contains(deltas(body), "forbidden") || !strings.Contains(body, "rejected") {
			t.Error(status, body, err)
		}
	})
}

func TestMasksErrors(t *testing.T) {
	guards := sluice.HTTPGuards{Response: sluice.MustGuards(
		sluice.Guard{Rules: []sluice.Matcher{sluice.Email}},
		sluice.Guard{Rules: []sluice.Matcher{sluice.Rule{Pattern: "forbidden"}}, Rejects: true},
	)}
	hosts(t, guards, func(t *testing.T, call func(string, string, string) (int, string, error), _ func() string) {
		for failed, wanted := range map[string]string{
			`application/json {"error":{"message":"unknown user bob\u0040example.com","code":1.0}}`: `{"error":{"code":1.0,"message":"unknown user <EMAIL_ADDRESS>"}}`,
			"text/plain unknown user bob_AT_example.com":                                            "unknown user <EMAIL_ADDRESS>",
			`application/json {"error": "bob\u0040example.com`:                                      "do not let pass",
			"text/html <p>bob&#64;example.com":                                                      "do not let pass",
			`application/json {"error":"forbidden"}`:                                                "do not let pass",
		} {
			status, body, err := call("POST", completions, chatOf("fail "+failed, false))
			if status != 400 || err != nil || !strings.Contains(body, wanted) || strings.Contains(body, "bob") {
				t.Errorf("%s: %d %s %v", failed, status, body, err)
			}
		}
	})
}

func TestPassesOnlyKnownPaths(t *testing.T) {
	guards := sluice.HTTPGuards{Request: masking, UnguardedPaths: []string{"/v1/models"}}
	hosts(t, guards, func(t *testing.T, call func(string, string, string) (int, string, error), sent func() string) {
		if status, body, err := call("GET", "/v1/models", ""); status != 200 || body != `{"data": []}` {
			t.Error(status, body, err)
		}
		for _, each := range []string{
			"GET /v1/responses/1", "GET " + completions, "DELETE " + completions, "POST /v1/threads/1/messages",
			"POST /v1/models/1", "POST /v1%2Fmodels", "POST " + completions + "/",
		} {
			method, path, _ := strings.Cut(each, " ")
			status, body, err := call(method, path, "ada@example.com")
			var unguarded *sluice.UnguardedError
			if status != 404 && !errors.As(err, &unguarded) {
				t.Error(each, status, body, err)
			}
		}
		if strings.Contains(sent(), "@") {
			t.Error("the model got", sent())
		}
	})
}

func TestFailsClosed(t *testing.T) {
	guards := sluice.HTTPGuards{Request: masking, Response: masking}
	hosts(t, guards, func(t *testing.T, call func(string, string, string) (int, string, error), sent func() string) {
		status, body, err := call("POST", completions, chatOf("garbage", false))
		if status != 502 || err != nil || !strings.Contains(body, "error") || strings.Contains(body, "choices") {
			t.Error(status, body, err)
		}
		before := sent()
		for _, unreadable := range []string{"{", `{"messages": "x", "messages": "ada@example.com"}`, ""} {
			status, body, err := call("POST", completions, unreadable)
			var failed *sluice.UnreadableError
			if status != 400 && !errors.As(err, &failed) {
				t.Error(unreadable, status, body, err)
			}
		}
		if sent() != before {
			t.Error("the model got", sent())
		}
	})
}

func TestRefusesAnswersThatCannotBeJudged(t *testing.T) {
	for name, header := range map[string]http.Header{
		"unknown type": {"Content-Type": {"text/plain"}},
		"no type":      {"Content-Type": {""}},
		"compressed":   {"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}},
	} {
		t.Run(name, func(t *testing.T) {
			model := http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
				for name, values := range header {
					writer.Header()[name] = values
				}
				_, _ = io.WriteString(writer, "ada@example.com")
			})
			guards := sluice.HTTPGuards{Response: masking}
			vendor := httptest.NewServer(model)
			defer vendor.Close()
			client := &http.Client{Transport: &sluice.Transport{HTTPGuards: guards}}
			body := strings.NewReader(chatOf("hello", false))
			if response, err := client.Post(vendor.URL+completions, "application/json", body); err == nil {
				t.Error("the client got", response.Status)
			}
			recorder := httptest.NewRecorder()
			request := httptest.NewRequest("POST", completions, strings.NewReader(chatOf("hello", false)))
			guards.Middleware(model).ServeHTTP(recorder, request)
			if recorder.Code != 500 || strings.Contains(recorder.Body.String(), "@") {
				t.Error(recorder.Code, recorder.Body)
			}
		})
	}
}

func TestForwardsEventsBeforeTheStreamEnds(t *testing.T) {
	proceed := make(chan struct{})
	model := http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(writer, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"first \"}}]}\n\n")
		_ = http.NewResponseController(writer).Flush()
		<-proceed
		fmt.Fprint(writer, "data: [DONE]\n\n")
	})
	guards := sluice.HTTPGuards{Response: rejecting}
	server := httptest.NewServer(guards.Middleware(model))
	defer server.Close()
	client := &http.Client{Transport: &sluice.Transport{HTTPGuards: guards}}
	response, err := client.Post(server.URL+completions, "application/json", strings.NewReader(chatOf("x", true)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	reader := bufio.NewReader(response.Body)
	if line, err := reader.ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
		t.Error(line, err)
	}
	close(proceed)
	if rest, err := io.ReadAll(reader); err != nil || !bytes.Contains(rest, []byte("[DONE]")) {
		t.Error(string(rest), err)
	}
}

func TestRewritesMessages(t *testing.T) {
	message := []byte(`{"model":"m","messages":[{"role":"user","content":"ada\u0040example.com ada@example.com"}],"stream":true}`)
	for cut := range message {
		rewriter, err := masking.NewRewriter(sluice.Completions, sluice.RequestMessage)
		if err != nil {
			t.Fatal(err)
		}
		first, err := rewriter.Push(message[:cut])
		if err != nil {
			t.Fatal(err)
		}
		rest, err := rewriter.End(message[cut:])
		masked := string(first) + string(rest)
		details, _ := rewriter.Details()
		rewriter.Close()
		if err != nil || strings.Count(masked, "<EMAIL_ADDRESS> <EMAIL_ADDRESS>") != 1 {
			t.Fatal(cut, masked, err)
		}
		if details.Model != "m" || !details.IsStream || details.RejectedBy != -1 || details.InputTokens != -1 {
			t.Fatal(details)
		}
		if _, err := rewriter.Push(nil); err == nil {
			t.Fatal("a closed rewriter takes more")
		}
	}
}

type secret struct{ Name, Mail string }

func (secret) LogValue() slog.Value { return slog.StringValue("of ada@example.com") }

type broken struct{}

func (*broken) Error() string { panic("no receiver") }

func TestMasksLogRecords(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(sluice.NewMaskHandler(slog.NewJSONHandler(&out, nil), sluice.MustMask(sluice.Email)))
	logger = logger.With("with", "ada@example.com").WithGroup("group")
	link, _ := url.Parse("mailto:ada@example.com")
	logger.Error("login of ada@example.com",
		"error", fmt.Errorf("of ada@example.com"), "url", link, "value", secret{},
		"struct", struct{ Mails []string }{[]string{"ada@example.com"}},
		"map", map[string]int{"ada@example.com": 7}, "bytes", []byte("ada@example.com"),
		slog.Group("inner", "mail", "ada@example.com"), "count", 3, "broken", (*broken)(nil), "channel", make(chan int))
	if strings.Contains(out.String(), "@") || strings.Count(out.String(), "<EMAIL_ADDRESS>") != 9 {
		t.Error(out.String())
	}
	for _, part := range []string{`"count":3`, `:7`, `"broken":"<not shown`, `"channel":"<not shown`} {
		if !strings.Contains(out.String(), part) {
			t.Error("no", part, "in", out.String())
		}
	}
}

func TestLimits(t *testing.T) {
	limiter, err := sluice.NewRateLimiter(sluice.Limit{Rate: 1, Per: 3600e9, Burst: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, wanted := range []bool{true, true, false} {
		if decision, err := limiter.Take("a", 1); err != nil || decision.Allowed != wanted {
			t.Error(i, decision, err)
		}
	}
	if decision, err := limiter.Take("b", 1); err != nil || !decision.Allowed {
		t.Error(decision, err)
	}
	if decision, err := limiter.Charge("b", 5); err != nil || decision.Remaining >= 0 {
		t.Error(decision, err)
	}
	if _, err := limiter.Take(strings.Repeat("k", 257), 1); err == nil {
		t.Error("a key of 257 bytes is taken")
	}
	if _, err := sluice.NewRateLimiter(sluice.Limit{}); err == nil {
		t.Error("a limit without a rate is taken")
	}
}

func TestCountsMessages(t *testing.T) {
	count, err := sluice.NewTokenCounter("gpt-4o").CountMessages([]sluice.Message{{Role: "user", Content: "hello world"}})
	if err != nil || count != 9 {
		t.Error(count, err)
	}
}

func TestMatchesRequestsOfServers(t *testing.T) {
	router, err := sluice.NewRouter([]sluice.Route{{
		ID: 7, Hostname: "*.example.com", Query: []sluice.Field{{Name: "q", Value: "a+", IsPattern: true}},
		Headers: []sluice.Field{{Name: "x-tenant", Value: "ada"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest("GET", "http://api.example.com:8080/path?q=aaa", nil)
	if _, ok, err := router.MatchRequest(request); ok || err != nil {
		t.Error("a request without the header matches", err)
	}
	request.Header.Set("X-Tenant", "ada")
	if id, ok, err := router.MatchRequest(request); id != 7 || !ok || err != nil {
		t.Error(id, ok, err)
	}
	_, err = sluice.NewRouter([]sluice.Route{{Path: "(", PathType: sluice.PathRegex}})
	var failed *sluice.PatternError
	if !errors.As(err, &failed) {
		t.Error(err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWritersReturnErrors(t *testing.T) {
	writer := sluice.NewMaskWriter(failingWriter{}, sluice.MustMask(sluice.Email))
	if _, err := writer.Write([]byte("some text. More text, which is not held back.")); err != io.ErrShortWrite {
		t.Error(err)
	}
	if err := writer.Close(); err != io.ErrShortWrite {
		t.Error(err)
	}
	closed := sluice.NewMaskWriter(io.Discard, sluice.MustMask(sluice.Email))
	if err := errors.Join(closed.Close(), closed.Close()); err != nil {
		t.Error(err)
	}
	if _, err := closed.Write([]byte("x")); err == nil {
		t.Error("a closed writer takes more")
	}
}

func TestManyGoroutines(t *testing.T) {
	mask := sluice.MustMask(sluice.Email)
	limiter, err := sluice.NewRateLimiter(sluice.Limit{Rate: 100, Per: 3600e9})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var mutex sync.Mutex
	allowed := 0
	for number := range 8 {
		group.Go(func() {
			for range 50 {
				text := fmt.Sprintf("%d a%d@example.com ", number, number)
				if masked, err := mask.MaskString(text); err != nil || masked != fmt.Sprintf("%d <EMAIL_ADDRESS> ", number) {
					t.Error(masked, err)
				}
				if count, err := sluice.CountTokens(text, "gpt-4"); err != nil || count < 5 {
					t.Error(count, err)
				}
				var out strings.Builder
				writer := sluice.NewMaskWriter(&out, mask)
				_, _ = writer.Write([]byte(text[:5]))
				_, _ = writer.Write([]byte(text[5:]))
				if err := writer.Close(); err != nil || strings.Contains(out.String(), "@") {
					t.Error(out.String(), err)
				}
				if decision, err := limiter.Take("", 1); err != nil {
					t.Error(err)
				} else if decision.Allowed {
					mutex.Lock()
					allowed++
					mutex.Unlock()
				}
			}
		})
	}
	group.Wait()
	if allowed != 100 {
		t.Error(allowed, "of 100 requests were allowed")
	}
}
