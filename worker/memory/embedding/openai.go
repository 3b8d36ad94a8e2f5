package embedding

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

const (
	path           = "/embeddings"
	defaultBatch   = 64
	maxBatch       = 2048
	defaultBudget  = 30 * time.Second
	defaultRetries = 3
	firstWait      = 250 * time.Millisecond // doubled each time
	defaultBaseURL = "https://api.openai.com/v1"
	maxText        = 24 << 10 // of a text is sent: models take about 8,000 tokens
	maxReply       = 32 << 20 // has room for a batch of the longest vectors
)

// Config is fixed for the life of an OpenAI.
type Config struct {
	httpstream.Endpoint // BaseURL ends before /embeddings. Default: that of OpenAI

	Model      string        // required
	Dimensions int           // that the model is asked for. Default: its own
	Batch      int           // texts of a request. Default 64
	Retries    int           // of a request after its first attempt, for errors that may pass. Default 3; negative: none
	Budget     time.Duration // for all of a call, waits included. Default 30 s
}

// OpenAI asks an endpoint for vectors. Safe for concurrent use.
type OpenAI struct {
	cfg    Config
	client *httpstream.Client
	dims   atomic.Int64
}

var _ longterm.Embedder = (*OpenAI)(nil)

// NewOpenAI returns a *messages.FieldError for a mistake. It does not connect.
func NewOpenAI(cfg Config) (*OpenAI, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = defaultBaseURL
	}
	if err := cfg.Check(path); err != nil {
		return nil, err
	}
	switch {
	case cfg.Model == "" || strict.CheckText("model", cfg.Model, longterm.MaxModel) != nil:
		return nil, &messages.FieldError{Field: "model", Reason: fmt.Sprintf("must be 1 to %d bytes of text", longterm.MaxModel)}
	case cfg.Dimensions < 0 || cfg.Dimensions > longterm.MaxDimensions:
		return nil, &messages.FieldError{Field: "dimensions", Reason: fmt.Sprintf("must be 1 to %d, or 0 for the model's own", longterm.MaxDimensions)}
	case cfg.Batch < 0 || cfg.Batch > maxBatch:
		return nil, &messages.FieldError{Field: "batch", Reason: fmt.Sprintf("must be 1 to %d", maxBatch)}
	case cfg.Budget < 0:
		return nil, &messages.FieldError{Field: "budget", Reason: "must not be negative"}
	}
	if cfg.Batch == 0 {
		cfg.Batch = defaultBatch
	}
	if cfg.Retries == 0 {
		cfg.Retries = defaultRetries
	}
	if cfg.Budget == 0 {
		cfg.Budget = defaultBudget
	}
	if cfg.MaxLine == 0 {
		cfg.MaxLine = maxReply
	}
	if cfg.MaxReply == 0 {
		cfg.MaxReply = maxReply + 1
	}
	o := &OpenAI{cfg: cfg, client: httpstream.New(httpstream.Config{
		Endpoint: cfg.Endpoint, URLVariable: "LONGSHORE_EMBEDDINGS_URL", RequestIDs: []string{"X-Request-Id"},
	})}
	o.dims.Store(int64(cfg.Dimensions))
	return o, nil
}

// Close closes the connections that are not in use.
func (o *OpenAI) Close() { o.client.Close() }

// Model implements longterm.Embedder. Vectors of one model and several lengths are told apart by their length.
func (o *OpenAI) Model() string { return o.cfg.Model }

// Dimensions implements longterm.Embedder: without a configured length it is 0 before the first answer.
func (o *OpenAI) Dimensions() int { return int(o.dims.Load()) }

// Embed implements longterm.Embedder. Of a text longer than 24 KiB the beginning counts.
func (o *OpenAI) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, o.cfg.Budget, errBudget)
	defer cancel()
	vectors := make([][]float32, 0, len(texts))
	for part := range slices.Chunk(texts, o.cfg.Batch) {
		got, err := o.retried(bounded, part)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, got...)
	}
	return vectors, nil
}

var errBudget = errors.New("the time for the call is used up")

// retried makes a request again while its errors may pass and the budget lasts. The error is that of the last attempt.
func (o *OpenAI) retried(ctx context.Context, texts []string) ([][]float32, error) {
	var last error
	for attempt := 0; ; attempt++ {
		vectors, err := o.request(ctx, texts)
		if err == nil {
			return vectors, nil
		}
		failed, ok := errors.AsType[*model.Error](err)
		if !ok { // the budget has ended
			if last == nil {
				last = &model.Error{Class: model.Timeout, Detail: "no vectors within " + o.cfg.Budget.String()}
			}
			return nil, last
		}
		last = err
		if !failed.Retryable() || attempt >= o.cfg.Retries {
			return nil, last
		}
		wait := max(time.Duration(float64(firstWait<<min(attempt, 10))*(0.5+rand.Float64())), failed.RetryAfter)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
			return nil, last
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, last
		}
	}
}

// request is one attempt. Its error is an *model.Error, or the cause of the context's end.
func (o *OpenAI) request(ctx context.Context, texts []string) ([][]float32, error) {
	cut := make([]string, len(texts))
	for i, t := range texts {
		cut[i] = strict.Clip(t, maxText)
	}
	body, err := json.Marshal(api.EmbeddingRequest{Input: cut, Model: api.EmbeddingModel(o.cfg.Model), EncodingFormat: api.EmbeddingEncodingFormatFloat, Dimensions: o.cfg.Dimensions})
	if err != nil {
		return nil, &model.Error{Class: model.InvalidRequest, Detail: "write request: " + err.Error()}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(o.cfg.BaseURL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, &model.Error{Class: model.InvalidRequest, Detail: "make request: the URL cannot be used"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "longshore")
	if !o.cfg.NoAuth {
		req.Header.Set("Authorization", "Bearer "+o.cfg.APIKey)
	}
	call := o.client.Call(ctx, nil)
	defer func() { _ = call.Close() }()
	vectors, used, err := o.answer(call, req, len(texts))
	if used >= 0 { // it may be billed, whatever the answer is worth
		longterm.Count(ctx, longterm.Embeddings{Model: o.cfg.Model, Calls: 1, Tokens: tokensOf(cut, used)})
	}
	if err != nil {
		return nil, call.Failure(err)
	}
	call.Complete()
	return vectors, nil
}

// answer returns the vectors, and how many tokens the endpoint says it has read: 0 if it does not, negative if it has not answered.
func (o *OpenAI) answer(call *httpstream.Call, req *http.Request, texts int) (vectors [][]float32, used int, err error) {
	err = call.Do(req)
	if refusal, ok := errors.AsType[*httpstream.RefusalError](err); ok {
		return nil, -1, refused(refusal)
	}
	if err != nil {
		return nil, -1, err
	}
	_, whole, err := call.Answer()
	if err != nil {
		return nil, -1, err
	}
	var reply api.EmbeddingResponse
	if err := json.Unmarshal(whole, &reply); err != nil || len(whole) == 0 {
		return nil, -1, &model.Error{Class: model.ModelOutput, Detail: "the answer is not a list of vectors"}
	}
	vectors, err = o.vectors(reply.Data, texts)
	return vectors, max(0, reply.Usage.PromptTokens), err
}

const (
	bytesOfToken = 4
	moreTokens   = 16 // that a model puts around a text, at most
)

// tokensOf are the tokens of texts, as the endpoint counts them; without that, four bytes count as one. More than each byte and what a model puts around
// a text is not believed.
func tokensOf(texts []string, used int) int64 {
	size := 0
	for _, t := range texts {
		size += len(t)
	}
	most := size + moreTokens*len(texts)
	if used == 0 {
		used = (size + bytesOfToken - 1) / bytesOfToken
	}
	return int64(min(used, most))
}

// vectors are those of an answer in the order of the texts.
func (o *OpenAI) vectors(data []api.Embedding, texts int) ([][]float32, error) {
	wrong := func(format string, args ...any) error {
		return &model.Error{Class: model.ModelOutput, Detail: fmt.Sprintf(format, args...)}
	}
	if len(data) != texts {
		return nil, wrong("the answer has %d vectors for %d texts", len(data), texts)
	}
	out := make([][]float32, texts)
	dims := len(data[0].Embedding)
	if dims == 0 || dims > longterm.MaxDimensions {
		return nil, wrong("a vector has %d dimensions, want 1 to %d", dims, longterm.MaxDimensions)
	}
	if known := o.cfg.Dimensions; known != 0 && dims != known {
		return nil, wrong("a vector has %d dimensions, want %d", dims, known)
	}
	for _, d := range data {
		switch {
		case d.Index < 0 || d.Index >= texts || out[d.Index] != nil:
			return nil, wrong("the answer has no vector for each text")
		case len(d.Embedding) != dims:
			return nil, wrong("the vectors have %d and %d dimensions", dims, len(d.Embedding))
		}
		var sum float64
		for _, x := range d.Embedding {
			sum += float64(x) * float64(x)
		}
		if sum == 0 || math.IsInf(sum, 0) || math.IsNaN(sum) {
			return nil, wrong("a vector has no direction")
		}
		out[d.Index] = d.Embedding
	}
	o.dims.Store(int64(dims))
	return out, nil
}

// refused is the error of an answer that is no 2xx.
func refused(no *httpstream.RefusalError) *model.Error {
	e := &model.Error{Class: httpstream.ClassOf(no.Status), Status: no.Status, Detail: string(no.Body)}
	e.RetryAfter, _ = httpstream.RetryAfter(no.Header, time.Now())
	var said struct {
		Error struct {
			Message string `json:"message"`
			Code    any    `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(no.Body, &said) == nil && said.Error.Message != "" {
		e.Detail = said.Error.Message
	}
	switch {
	case httpstream.Mentions(strings.ToLower(string(no.Body)), "insufficient_quota", "billing", "exceeded your current quota"):
		e.Class = model.Quota
	case e.Class == model.Auth:
		e.Hint = "check LONGSHORE_EMBEDDINGS_KEY"
	case no.Status == http.StatusNotFound:
		e.Class, e.Hint = model.InvalidRequest, "check LONGSHORE_EMBEDDINGS_URL and LONGSHORE_EMBEDDINGS_MODEL"
	}
	return e
}
