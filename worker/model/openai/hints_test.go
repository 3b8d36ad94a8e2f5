package openai_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/worker/model"
)

// TestHints checks, on answers as providers give them, that what an operator can fix comes with a sentence that says how.
func TestHints(t *testing.T) {
	const (
		badKey  = "check OPENAI_API_KEY"
		noModel = "no model of this name"
		full    = "choose one with a larger context"
	)
	for name, tt := range map[string]struct {
		status int
		body   string
		class  model.Class
		hint   string
	}{
		"bad key, OpenAI":     {401, `{"error":{"message":"Incorrect API key provided: sk-nope. You can find your API key at https://platform.openai.com/account/api-keys.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, model.Auth, badKey},
		"bad key, OpenRouter": {401, `{"error":{"message":"User not found.","code":401}}`, model.Auth, badKey},
		"no key, OpenRouter":  {401, `{"error":{"message":"No auth credentials found","code":401}}`, model.Auth, badKey},
		"bad key, NVIDIA":     {403, `{"status":403,"title":"Forbidden","detail":"Authorization failed"}`, model.Auth, badKey},
		"bad key, Azure":      {401, `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`, model.Auth, badKey},
		"bad key, Groq":       {401, `{"error":{"message":"Invalid API Key","type":"invalid_request_error","code":"invalid_api_key"}}`, model.Auth, badKey},
		"bad key, Mistral":    {401, `{"detail":"Unauthorized"}`, model.Auth, badKey},
		"bad key, DeepSeek":   {401, `{"error":{"message":"Authentication Fails, Your api key: ****nope is invalid","type":"authentication_error","param":null,"code":"invalid_request_error"}}`, model.Auth, badKey},
		"bad key, vLLM":       {401, `{"error":"Unauthorized"}`, model.Auth, badKey},
		"bad key, llama.cpp":  {401, `{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}`, model.Auth, badKey},
		"bad key, xAI":        {400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: no***pe. You can obtain an API key from https://console.x.ai."}`, model.Auth, badKey},

		"wrong model, OpenAI":     {404, `{"error":{"message":"The model 'gpt-99' does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}`, model.InvalidRequest, noModel},
		"wrong model, OpenRouter": {400, `{"error":{"message":"x/y is not a valid model ID","code":400}}`, model.InvalidRequest, noModel},
		"no host, OpenRouter":     {404, `{"error":{"message":"No endpoints found for x/y.","code":404}}`, model.InvalidRequest, noModel},
		"wrong model, NVIDIA":     {404, `{"status":404,"title":"Not Found","detail":"Function 'a1b2': Not found for account 'c3d4'"}`, model.InvalidRequest, noModel},
		"wrong model, Azure":      {404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, model.InvalidRequest, noModel},
		"wrong model, Groq":       {404, `{"error":{"message":"The model 'x' does not exist or you do not have access to it.","type":"invalid_request_error","code":"model_not_found"}}`, model.InvalidRequest, noModel},
		"wrong model, Mistral":    {400, `{"object":"error","message":"Invalid model: x","type":"invalid_model","param":null,"code":"1500"}`, model.InvalidRequest, noModel},
		"wrong model, DeepSeek":   {400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, model.InvalidRequest, noModel},
		"wrong model, vLLM":       {404, `{"object":"error","message":"The model 'x' does not exist.","type":"NotFoundError","param":null,"code":404}`, model.InvalidRequest, noModel},
		"wrong model, Ollama":     {404, `{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`, model.InvalidRequest, noModel},

		"full, OpenAI":     {400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, model.ContextLength, full},
		"full, OpenRouter": {400, `{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens.","code":400,"metadata":{"provider_name":null}}}`, model.ContextLength, full},
		"full, Mistral":    {400, `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt_too_long","code":"3051"}`, model.ContextLength, full},
		"full, Groq":       {413, `{"error":{"message":"Request too large for model 'x' in organization 'o' on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}`, model.ContextLength, full},
		"full, vLLM":       {400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages, Please reduce the length of the messages.","type":"BadRequestError","param":null,"code":400}`, model.ContextLength, full},
		"full, llama.cpp":  {400, `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`, model.ContextLength, full},
		"full, Ollama":     {400, `{"error":{"message":"the input length exceeds the context length","type":"invalid_request_error"}}`, model.ContextLength, full},
		"full, xAI":        {400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}`, model.ContextLength, full},
		"full, Gemini":     {400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, model.ContextLength, full},

		"no credit, DeepSeek":    {402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, model.Quota, "billing"},
		"no credit, OpenAI":      {429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, model.Quota, "billing"},
		"no tools, Ollama":       {400, `{"error":{"message":"registry.ollama.ai/library/x does not support tools","type":"api_error","param":null,"code":null}}`, model.InvalidRequest, "refuses the tools"},
		"no tools, vLLM":         {400, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}`, model.InvalidRequest, "refuses the tools"},
		"no schema, DeepSeek":    {400, `{"error":{"message":"This response_format type is unavailable now","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, model.InvalidRequest, "jsonSchema"},
		"no temperature, OpenAI": {400, `{"error":{"message":"Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`, model.InvalidRequest, "leave it out"},
		"no echo, DeepSeek":      {400, `{"error":{"message":"The reasoning_content in the thinking mode must be passed back to the API.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, model.InvalidRequest, "reasoning: echo"},
		"no signature, Gemini":   {400, `[{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}]`, model.InvalidRequest, "reasoning: echo"},
		"no images, vLLM":        {400, `{"object":"error","message":"x is not a multimodal model: At most 0 image(s) may be provided in one request.","type":"BadRequestError","code":400}`, model.InvalidRequest, "takes no images"},
		"wrong path, Go server":  {404, "404 page not found\n", model.InvalidRequest, "usually ends in /v1"},
	} {
		t.Run(name, func(t *testing.T) {
			e := fails(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				write(w, tt.body, 0)
			}))
			if e.Class != tt.class || !strings.Contains(e.Hint, tt.hint) || strings.Contains(e.Hint, ". ") {
				t.Errorf("class %s, hint %q, want %s and %q: %v", e.Class, e.Hint, tt.class, tt.hint, e)
			}
			if e.Retryable() {
				t.Error("it would be tried again")
			}
		})
	}
}
