package traces

import (
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// Names of attributes, of the semantic conventions of OpenTelemetry for generative AI: the repository
// semantic-conventions-genai, which began with the conventions' version 1.42.0. They are in development there and will
// change; nothing but this file knows them.
const (
	attrOperation    = "gen_ai.operation.name"
	attrProvider     = "gen_ai.provider.name"
	attrModel        = "gen_ai.request.model"
	attrFinish       = "gen_ai.response.finish_reasons"
	attrInput        = "gen_ai.usage.input_tokens"
	attrOutput       = "gen_ai.usage.output_tokens"
	attrCacheRead    = "gen_ai.usage.cache_read.input_tokens"
	attrCacheWrite   = "gen_ai.usage.cache_creation.input_tokens"
	attrReasoning    = "gen_ai.usage.reasoning.output_tokens"
	attrConversation = "gen_ai.conversation.id"
	attrAgent        = "gen_ai.agent.name"
	attrAgentVersion = "gen_ai.agent.version"
	attrTool         = "gen_ai.tool.name"
	attrToolCall     = "gen_ai.tool.call.id"
	attrError        = "error.type"

	attrService        = "service.name"
	attrServiceVersion = "service.version"
)

// Values of attrOperation. A span's name begins with it.
const (
	opAgent = "invoke_agent"
	opChat  = "chat"
	opTool  = "execute_tool"
)

// Names of attributes that the conventions have no word for.
const (
	attrTenant     = "longshore.tenant"
	attrRun        = "longshore.run.id"
	attrStatus     = "longshore.run.status"
	attrSteps      = "longshore.run.steps"
	attrQueued     = "longshore.run.queued_ms" // how long the task waited for a worker
	attrStep       = "longshore.step.number"
	attrStepID     = "longshore.step.id"
	attrStepStatus = "longshore.step.status"
	attrCost       = "longshore.cost_usd" // absent: a price is unknown
	attrCached     = "longshore.cached"   // the reply came from the cache: nothing was paid
	attrFallback   = "longshore.fallback" // what was done instead of failing
	attrReason     = "longshore.wait.reason"
	attrLimit      = "longshore.wait.limit"
	attrLink       = "longshore.link" // what a link is: forked_from
	attrFromStep   = "longshore.fork.step"
)

// providerName is the name that the conventions have for a provider; others keep the one their operator gave them.
func providerName(s string) string {
	switch s {
	case "azure":
		return "azure.ai.openai"
	case "bedrock":
		return "aws.bedrock"
	case "gemini":
		return "gcp.gemini"
	case "mistral":
		return "mistral_ai"
	case "xai":
		return "x_ai"
	default:
		return s
	}
}

// attributes gathers them; what is empty or zero is left out.
type attributes []*commonpb.KeyValue

func (a *attributes) text(key, value string) {
	if value != "" {
		*a = append(*a, &commonpb.KeyValue{Key: key, Value: textValue(value)})
	}
}

func (a *attributes) count(key string, n int64) {
	if n != 0 {
		*a = append(*a, &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: n}}})
	}
}

func (a *attributes) truth(key string, v bool) {
	if v {
		*a = append(*a, &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v}}})
	}
}

func (a *attributes) amount(key string, v *float64) {
	if v != nil {
		*a = append(*a, &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: *v}}})
	}
}

func (a *attributes) list(key string, values ...string) {
	all := &commonpb.ArrayValue{}
	for _, v := range values {
		all.Values = append(all.Values, textValue(v))
	}
	*a = append(*a, &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: all}}})
}

func textValue(s string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
}
