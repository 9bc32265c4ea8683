package sluice_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice.dev/sluice"
)

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
				client.Transport = &sluice.Transport{Guards: guards}
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
			client := &http.Client{Transport: &sluice.Transport{Guards: guards}}
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
	client := &http.Client{Transport: &sluice.Transport{Guards: guards}}
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
