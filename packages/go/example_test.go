package sluice_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"sluice.dev/sluice"
)

func ExampleMask() {
	mask := sluice.MustMask(sluice.Email, sluice.Rule{Pattern: `sk-[a-z0-9]{8,}`, Replacement: "<KEY>"})
	masked, err := mask.MaskString("ada@example.com has sk-12345678")
	fmt.Println(masked, err)
	// Output: <EMAIL_ADDRESS> has <KEY> <nil>
}

func ExampleMaskWriter() {
	writer := sluice.NewMaskWriter(os.Stdout, sluice.MustMask(sluice.Email))
	fmt.Fprint(writer, "write to ada@exam")
	fmt.Fprint(writer, "ple.com today")
	writer.Close()
	// Output: write to <EMAIL_ADDRESS> today
}

func ExampleTransport() {
	vendor := httptest.NewServer(http.HandlerFunc(repeatMessage))
	defer vendor.Close()
	url := vendor.URL + "/v1/chat/completions"
	body := `{"messages": [{"role": "user", "content": "I am ada@example.com"}]}`

	secrets := sluice.MustGuards(sluice.Guard{Rules: []sluice.Matcher{sluice.Email, sluice.CreditCard}})
	guards := sluice.HTTPGuards{Request: secrets, Response: secrets, UnguardedPaths: []string{"/v1/models"}}
	client := &http.Client{Transport: &sluice.Transport{Guards: guards}}
	response, err := client.Post(url, "application/json", strings.NewReader(body))

	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := io.ReadAll(response.Body)
	fmt.Println(string(answer), err)
	// Output: {"choices":[{"index":0,"message":{"role":"assistant","content":"I am <EMAIL_ADDRESS>"}}]} <nil>
}

func ExampleHTTPGuards_Middleware() {
	chat := http.HandlerFunc(repeatMessage)

	secrets := sluice.MustGuards(sluice.Guard{Rules: []sluice.Matcher{sluice.Email}, Rejects: true})
	guards := sluice.HTTPGuards{Request: secrets, Response: secrets, UnguardedPaths: []string{"/healthz"}}
	handler := guards.Middleware(chat)

	body := strings.NewReader(`{"messages": [{"role": "user", "content": "I am ada@example.com"}]}`)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest("POST", "/v1/chat/completions", body))
	fmt.Println(recorder.Code)
	// Output: 403
}

func ExampleMaskHandler() {
	output := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})

	logger := slog.New(sluice.NewMaskHandler(output, sluice.MustMask(sluice.Email)))
	logger.Warn("login failed", "user", "ada@example.com")
	// Output: level=WARN msg="login failed" user=<EMAIL_ADDRESS>
}

func ExampleCountTokens() {
	count, err := sluice.CountTokens("hello world", "gpt-4o")
	fmt.Println(count, err)
	// Output: 2 <nil>
}

func ExampleRateLimiter() {
	limiter, err := sluice.NewRateLimiter(sluice.Limit{Rate: 100, Per: time.Minute, Burst: 20})
	if err != nil {
		panic(err)
	}
	decision, err := limiter.Take("tenant-1", 1)
	fmt.Println(decision.Allowed, decision.Remaining, err)
	// Output: true 119 <nil>
}

func ExampleRouter() {
	router, err := sluice.NewRouter([]sluice.Route{
		{ID: 1, Path: "/v1"},
		{ID: 2, Path: "/v1/models", PathType: sluice.PathExact, Method: "GET"},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(router.Match(sluice.Request{Target: "/v1/models"}))
	fmt.Println(router.Match(sluice.Request{Target: "/v1/chat", Method: "POST"}))
	// Output:
	// 2 true <nil>
	// 1 true <nil>
}

func ExamplePattern() {
	pattern, err := sluice.CompilePattern(`\d{4}-\d{2}-\d{2}`)
	if err != nil {
		panic(err)
	}
	spans, err := pattern.FindAll([]byte("due 2031-05-04, paid 2031-05-02"))
	fmt.Println(spans, err)
	// Output: [[4 14] [21 31]] <nil>
}
