package settings

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// Traces says where dispatchers export traces. The names are those of OpenTelemetry.
type Traces struct {
	OTLP           string `env:"OTEL_EXPORTER_OTLP_ENDPOINT"        help:"collector of traces, http or https; /v1/traces is added (default: traces are off)"`
	OTLPTraces     string `env:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" help:"the complete URL, instead of OTEL_EXPORTER_OTLP_ENDPOINT"`
	OTLPProtocol   string `env:"OTEL_EXPORTER_OTLP_PROTOCOL"        help:"http/protobuf, the only supported protocol"`
	OTLPHeaders    string `env:"OTEL_EXPORTER_OTLP_HEADERS"         help:"headers for the collector: name=value, comma separated, percent-encoded" secret:"true"`
	OTLPTracesHead string `env:"OTEL_EXPORTER_OTLP_TRACES_HEADERS"  help:"instead of OTEL_EXPORTER_OTLP_HEADERS" secret:"true"`
	OTLPCA         string `env:"OTEL_EXPORTER_OTLP_CERTIFICATE"     help:"file with the CA certificates of the collector, PEM"`
	OTelService    string `env:"OTEL_SERVICE_NAME"                  envDefault:"longshore" help:"service.name of the spans"`
	OTelResource   string `env:"OTEL_RESOURCE_ATTRIBUTES"           help:"more attributes of the service: name=value, comma separated, percent-encoded"`
}

// tracesPath is where a collector takes traces.
const tracesPath = "/v1/traces"

// CollectorURL is the whole address; empty: traces are off.
func (s *Traces) CollectorURL() string {
	if s.OTLPTraces != "" || s.OTLP == "" {
		return s.OTLPTraces
	}
	u, err := url.Parse(s.OTLP)
	if err != nil {
		return "" // Check has refused it
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + tracesPath
	return u.String()
}

// CollectorHeaders are sent with each request; they may be secret.
func (s *Traces) CollectorHeaders() map[string]string {
	if s.OTLPTracesHead != "" {
		out, _ := pairs(s.OTLPTracesHead)
		return out
	}
	out, _ := pairs(s.OTLPHeaders)
	return out
}

// Resource are more attributes of the service.
func (s *Traces) Resource() map[string]string {
	out, _ := pairs(s.OTelResource)
	return out
}

// Check returns an *Error. It never shows a value: each may hold a secret.
func (s *Traces) Check() error {
	for _, a := range []struct{ name, value string }{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", s.OTLP}, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", s.OTLPTraces},
	} {
		u, err := url.Parse(a.value)
		if a.value != "" && (err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https") {
			return Errorf("%s: not an address such as http://127.0.0.1:4318", a.name)
		}
	}
	if s.OTLP+s.OTLPTraces != "" && s.OTLPProtocol != "" && s.OTLPProtocol != "http/protobuf" {
		return Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: only http/protobuf is spoken; its port is mostly 4318")
	}
	for _, p := range []struct{ name, value string }{
		{"OTEL_EXPORTER_OTLP_HEADERS", s.OTLPHeaders},
		{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", s.OTLPTracesHead},
		{"OTEL_RESOURCE_ATTRIBUTES", s.OTelResource},
	} {
		if _, ok := pairs(p.value); !ok {
			return Errorf("%s: not a list such as name=value,other=value", p.name)
		}
	}
	return nil
}

// pairs reads a list of OpenTelemetry's. Names are those that a header may have.
func pairs(list string) (out map[string]string, ok bool) {
	out = map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !found || err != nil || name == "" || strings.Trim(name, tokenChars) != "" || strings.ContainsFunc(value, isControl) || !utf8.ValidString(value) {
			return nil, false
		}
		out[name] = value
	}
	return out, true
}

const tokenChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// tokens are the secrets within the headers.
func (s *Traces) tokens() []string {
	var out []string
	for _, list := range []string{s.OTLPHeaders, s.OTLPTracesHead} {
		headers, _ := pairs(list)
		for _, value := range headers {
			out = append(out, value)
			if _, token, scheme := strings.Cut(value, " "); scheme { // Bearer, Basic
				out = append(out, token)
			}
		}
	}
	return out
}
