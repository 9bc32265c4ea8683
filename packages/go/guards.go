package sluice

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"sluice.dev/sluice/internal/abi"
)

// Format is the API that a message belongs to.
type Format int

// The formats of messages.
const (
	Completions Format = abi.TextsCompletions // chat completions
	Messages    Format = abi.TextsMessages
	Responses   Format = abi.TextsResponses
	Embeddings  Format = abi.TextsEmbeddings
)

// Kind says what a message is.
type Kind int

// The kinds of messages.
const (
	RequestMessage Kind = abi.TextsRequest
	AnswerMessage  Kind = abi.TextsAnswer
	StreamMessage  Kind = abi.TextsStream // an answer of server-sent events
)

func (k Kind) String() string {
	switch k {
	case RequestMessage:
		return "request"
	case AnswerMessage:
		return "answer"
	case StreamMessage:
		return "stream"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// MaxMessageBytes is the maximum size of a document, and of an event of a stream.
const MaxMessageBytes = 32 << 20

// UnreadableError is a message that cannot be judged, so that it must not pass.
type UnreadableError struct {
	Kind Kind
	// Name is the name of the code in core.abi.json, for example "TEXTS_MALFORMED".
	Name string
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("sluice: the %s cannot be judged: %s", e.Kind, e.Name)
}

// RejectedError is a message that a guard rejects.
type RejectedError struct {
	Kind Kind
	// Guard is the index of the guard.
	Guard int
}

func (e *RejectedError) Error() string {
	return fmt.Sprintf("sluice: guard %d rejects the %s", e.Guard, e.Kind)
}

// Guard has rules that are applied together.
type Guard struct {
	Rules []Matcher
	// Rejects says that a match rejects the message instead of being masked.
	Rejects bool
}

// Guards judge the texts in messages to language models and in their answers. Each guard sees the texts
// as the guards before it leave them.
type Guards struct {
	compiled *compiled
	// texts has the mask of each guard, for texts that are in no message.
	texts func() ([]textGuard, error)
}

type textGuard struct {
	mask    *Mask
	rejects bool
}

// NewGuards compiles guards, at most 64. It returns a [*PatternError] if a pattern cannot be compiled.
func NewGuards(guards ...Guard) (*Guards, error) {
	guards = append([]Guard(nil), guards...)
	for i := range guards {
		guards[i].Rules = append([]Matcher(nil), guards[i].Rules...)
	}
	made, err := newCompiled(textsPool, "guards_free", func(on *instance) int32 {
		chain := on.checked("creating guards", "guards_new")
		on.orUndo(func() { on.call("guards_free", i32(chain)) }, func() {
			for _, each := range guards {
				set := compileRules(on, each.Rules)
				// The chain has its own reference to the mask.
				defer on.call("mask_free", i32(set))
				on.checked("adding a guard", "guards_add", i32(chain), i32(set), flag(each.Rejects))
			}
		})
		return chain
	})
	if err != nil {
		return nil, err
	}
	texts := sync.OnceValues(func() (texts []textGuard, err error) {
		for _, each := range guards {
			mask, err := NewMask(each.Rules...)
			if err != nil {
				return nil, err
			}
			texts = append(texts, textGuard{mask, each.Rejects})
		}
		return texts, nil
	})
	return &Guards{made, texts}, nil
}

// MustGuards is like [NewGuards], but panics if the guards cannot be compiled.
func MustGuards(guards ...Guard) *Guards {
	made, err := NewGuards(guards...)
	if err != nil {
		panic(err)
	}
	return made
}

// Rewrite returns a whole message with masked texts. It returns an [*UnreadableError] or a
// [*RejectedError] if the message must not pass.
func (g *Guards) Rewrite(format Format, kind Kind, message []byte) ([]byte, error) {
	rewriter, err := g.NewRewriter(format, kind)
	if err != nil {
		return nil, err
	}
	defer rewriter.Close()
	return rewriter.End(message)
}

// Rewriter rewrites one message that arrives in pieces. After an error, the rest of the message must not
// pass; Fail ends it. A rewriter must be used by one goroutine at a time.
type Rewriter struct {
	kind    Kind
	session *session
}

// NewRewriter returns a rewriter of one message.
func (g *Guards) NewRewriter(format Format, kind Kind) (*Rewriter, error) {
	session, err := textsPool.open("texts_free", func(on *instance) int32 {
		return on.checked("creating a rewriter", "texts_new",
			i32(g.compiled.handle(on)), i32(int32(format)), i32(int32(kind)), i32(MaxMessageBytes))
	})
	if err != nil {
		return nil, err
	}
	return &Rewriter{kind, session}, nil
}

// Push adds bytes of the message and returns what is ready.
func (r *Rewriter) Push(piece []byte) ([]byte, error) { return r.push(piece, false) }

// End adds the last bytes and returns everything that remains.
func (r *Rewriter) End(piece []byte) ([]byte, error) { return r.push(piece, true) }

func (r *Rewriter) push(piece []byte, isEnd bool) (out []byte, err error) {
	err = r.session.run(func(on *instance, handle int32) {
		place, length := on.put(piece)
		size := on.call("texts_push", i32(handle), place, length, flag(isEnd))
		if size < 0 {
			fail(&UnreadableError{r.kind, codeName(size)})
		}
		out = r.output(on, handle, size)
		if rejected := readDetails(on, handle).RejectedBy; rejected >= 0 {
			out = nil
			fail(&RejectedError{r.kind, rejected})
		}
	})
	return out, err
}

// Fail ends the message with an error in its format, after the events that were ready before.
func (r *Rewriter) Fail(status int, message string) (out []byte, err error) {
	err = r.session.run(func(on *instance, handle int32) {
		text, length := on.put([]byte(message))
		size := on.checked("writing an error", "texts_fail", i32(handle), i32(int32(status)), text, length)
		out = r.output(on, handle, size)
	})
	return out, err
}

// Close frees the rewriter. It may be called more than once.
func (r *Rewriter) Close() { r.session.close() }

func (r *Rewriter) output(on *instance, handle, size int32) []byte {
	return append([]byte(nil), on.view(address(on.call("texts_output", i32(handle))), int(size))...)
}

// MessageDetails is what is known of a message so far.
type MessageDetails struct {
	// InputTokens and OutputTokens are the usage that the answer reports, or -1.
	InputTokens, OutputTokens int
	// Model is empty if it is not known.
	Model string
	// IsStream says that the request asks for a stream.
	IsStream bool
	// RejectedBy is the index of the first guard that rejects the message, or -1.
	RejectedBy int
}

// Details returns what is known of the message so far.
func (r *Rewriter) Details() (details MessageDetails, err error) {
	err = r.session.run(func(on *instance, handle int32) { details = readDetails(on, handle) })
	return details, err
}

func readDetails(on *instance, handle int32) MessageDetails {
	record := on.alloc(abi.TextsRecordSize)
	on.checked("reading details", "texts_record", i32(handle), record.arg())
	flags := on.word(record + abi.TextsFlags)
	tokens := func(offset address, isReported bool) int {
		if !isReported {
			return -1
		}
		return int(min(max(0, on.double(record+offset)), math.MaxInt32))
	}
	start, end := address(on.word(record+abi.TextsModel)), address(on.word(record+abi.TextsModel+4))
	details := MessageDetails{
		InputTokens:  tokens(abi.TextsInputTokens, flags&abi.TextsHasInput != 0),
		OutputTokens: tokens(abi.TextsOutputTokens, flags&abi.TextsHasOutput != 0),
		IsStream:     flags&abi.TextsIsStream != 0,
		RejectedBy:   int(on.word(record + abi.TextsRejected)),
	}
	if end > start {
		details.Model = string(on.view(start, int(end-start)))
	}
	return details
}

var errRejectedText = errors.New("sluice: a guard rejects the text")

// maskText masks a text that is in no message, such as the error of a vendor.
func (g *Guards) maskText(text string) (string, error) {
	guards, err := g.texts()
	if err != nil {
		return "", err
	}
	for _, each := range guards {
		masked, err := each.mask.MaskString(text)
		if err != nil {
			return "", err
		}
		if each.rejects && masked != text {
			return "", errRejectedText
		}
		text = masked
	}
	return text, nil
}
