package embedding_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/memory/embedding"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

const key = "sk-planted-key-0123456789"

// serve starts an endpoint and returns an embedder that asks it.
func serve(t *testing.T, cfg embedding.Config, answer http.HandlerFunc) *embedding.OpenAI {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	cfg.BaseURL, cfg.APIKey, cfg.Model = server.URL+"/v1", key, "small"
	o, err := embedding.NewOpenAI(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

type request struct {
	Input      []string `json:"input"`
	Model      string   `json:"model"`
	Dimensions int      `json:"dimensions"`
	Format     string   `json:"encoding_format"`
}

func read(t *testing.T, r *http.Request) request {
	t.Helper()
	var in request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		t.Error(err)
	}
	return in
}

// vectors is an answer in which the vector of a text is its length and 1; the last text comes first.
func vectors(in request) string {
	var data []string
	for i, text := range slices.Backward(in.Input) {
		data = append(data, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[%d,1]}`, i, len(text)))
	}
	return `{"object":"list","data":[` + strings.Join(data, ",") + `],"model":"small","usage":{"prompt_tokens":5,"total_tokens":5}}`
}

func TestBatchesInOrder(t *testing.T) {
	var sizes []int
	o := serve(t, embedding.Config{Batch: 2, Dimensions: 2}, func(w http.ResponseWriter, r *http.Request) {
		in := read(t, r)
		if r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer "+key || in.Model != "small" || in.Dimensions != 2 || in.Format != "float" {
			t.Errorf("%s %+v", r.URL, in)
		}
		sizes = append(sizes, len(in.Input))
		fmt.Fprint(w, vectors(in))
	})
	var meter, outer longterm.Meter
	got, err := outer.Of(o).Embed(meter.Metered(t.Context()), []string{"a", "bb", "ccc"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (longterm.Embeddings{Model: "small", Calls: 2, Tokens: 5 + 5}); meter.Total() != want || outer.Total() != want {
		t.Errorf("counted %+v and %+v, want %+v", meter.Total(), outer.Total(), want)
	}
	if diff := cmp.Diff([][]float32{{1, 1}, {2, 1}, {3, 1}}, got); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(sizes, []int{2, 1}) || o.Dimensions() != 2 || o.Model() != "small" {
		t.Errorf("requests of %v texts, %d dimensions", sizes, o.Dimensions())
	}
	if got, err := o.Embed(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("nothing: %v, %v", got, err)
	}
}

func TestRetriesWhatMayPass(t *testing.T) {
	var calls atomic.Int32
	o := serve(t, embedding.Config{}, func(w http.ResponseWriter, r *http.Request) {
		in := read(t, r)
		switch calls.Add(1) {
		case 1:
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, vectors(in))
		}
	})
	if got, err := o.Embed(t.Context(), []string{"a"}); err != nil || len(got) != 1 || calls.Load() != 3 || o.Dimensions() != 2 {
		t.Errorf("%v, %v after %d calls", got, err, calls.Load())
	}
}

func TestWhatAnEndpointMayAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		class  model.Class
		calls  int32
	}{
		"no access":         {401, `{"error":{"message":"Incorrect API key provided: ` + key + `","code":"invalid_api_key"}}`, model.Auth, 1},
		"no such model":     {404, `{"error":{"message":"The model does not exist"}}`, model.InvalidRequest, 1},
		"no money":          {429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, model.Quota, 1},
		"always overloaded": {503, key, model.Overloaded, 2},
		"a web page":        {200, `<html>` + key + `</html>`, model.ModelOutput, 2},
		"another shape":     {200, `{"data":"` + key + `"}`, model.ModelOutput, 2},
		"too few":           {200, `{"data":[]}`, model.ModelOutput, 2},
		"twice the same":    {200, `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`, model.ModelOutput, 2},
		"a wrong index":     {200, `{"data":[{"index":0,"embedding":[1]},{"index":7,"embedding":[1]}]}`, model.ModelOutput, 2},
		"several lengths":   {200, `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`, model.ModelOutput, 2},
		"nothing in it":     {200, `{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`, model.ModelOutput, 2},
		"no direction":      {200, `{"data":[{"index":0,"embedding":[0]},{"index":1,"embedding":[1]}]}`, model.ModelOutput, 2},
		"too long a vector": {200, `{"data":[{"index":0,"embedding":[` + strings.Repeat("1,", 5000) + `1]},{"index":1,"embedding":[1]}]}`, model.ModelOutput, 2},
		"cut":               {200, `{"data":[{"index":0,"embedd`, model.Truncated, 2},
		"too large":         {200, `{"data":[` + strings.Repeat(" ", 5000) + `]}`, model.ReplyTooLarge, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			cfg := embedding.Config{Retries: 1}
			if name == "too large" {
				cfg.MaxLine = 4000
			}
			o := serve(t, cfg, func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			})
			_, err := o.Embed(t.Context(), []string{"a", "b"})
			var failed *model.Error
			if !errors.As(err, &failed) || failed.Class != tt.class || calls.Load() != tt.calls {
				t.Errorf("%v after %d calls, want %s after %d", err, calls.Load(), tt.class, tt.calls)
			}
			if err != nil && strings.Contains(err.Error(), key) {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

func TestSlowEndpoint(t *testing.T) {
	end := make(chan struct{})
	o := serve(t, embedding.Config{Budget: 300 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-end:
		}
	})
	t.Cleanup(func() { close(end) })
	_, err := o.Embed(t.Context(), []string{"a"})
	var failed *model.Error
	if !errors.As(err, &failed) || failed.Class != model.Timeout {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.Embed(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestNoEndpoint(t *testing.T) {
	server := httptest.NewServer(nil)
	address := server.URL
	server.Close()
	o, err := embedding.NewOpenAI(embedding.Config{Endpoint: httpstream.Endpoint{BaseURL: address, APIKey: key}, Model: "m", Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	var failed *model.Error
	if _, err := o.Embed(t.Context(), []string{"a"}); !errors.As(err, &failed) || failed.Class != model.Network || !strings.Contains(err.Error(), "LONGSHORE_EMBEDDINGS_URL") {
		t.Errorf("%v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for field, cfg := range map[string]embedding.Config{
		"apiKey":     {Model: "m"},
		"model":      {Endpoint: httpstream.Endpoint{APIKey: "k"}},
		"dimensions": {Endpoint: httpstream.Endpoint{APIKey: "k"}, Model: "m", Dimensions: 5000},
		"batch":      {Endpoint: httpstream.Endpoint{APIKey: "k"}, Model: "m", Batch: 5000},
		"budget":     {Endpoint: httpstream.Endpoint{APIKey: "k"}, Model: "m", Budget: -1},
		"baseURL":    {Endpoint: httpstream.Endpoint{APIKey: "k", BaseURL: "http://host/v1/embeddings"}, Model: "m"},
	} {
		var wrong *messages.FieldError
		if _, err := embedding.NewOpenAI(cfg); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
