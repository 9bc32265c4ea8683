package sluice_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice"
)

func withoutTime(_ []string, attr slog.Attr) slog.Attr {
	if attr.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return attr
}

func TestTellsKeysFromDigestsOfKeys(t *testing.T) {
	limiter, err := sluice.NewRateLimiter(sluice.Limit{Rate: 1, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("b", 5000)
	digest := sha256.Sum256([]byte(long))
	for _, key := range []string{long, "\xff" + string(digest[:]), string(digest[:])} {
		if decision, err := limiter.Take(key, 1); err != nil || !decision.Allowed {
			t.Errorf("%q: %+v %v", key, decision, err)
		}
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
	for _, limit := range []sluice.Limit{{}, {Rate: math.NaN()}, {Rate: math.Inf(1)}, {Rate: 1, Burst: math.Inf(1)}, {Rate: 1, Per: -1}, {Rate: 1, Keys: -1}} {
		if _, err := sluice.NewRateLimiter(limit); err == nil {
			t.Errorf("%+v is taken", limit)
		}
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
