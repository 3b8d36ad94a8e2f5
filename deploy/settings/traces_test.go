package settings_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/deploy/settings"
)

func TestTraces(t *testing.T) {
	for name, tc := range map[string]struct {
		set  []string
		url  string
		want string // begin of the error; empty: none
	}{
		"off":                {nil, "", ""},
		"headers alone":      {[]string{"OTEL_EXPORTER_OTLP_HEADERS=a=b"}, "", ""},
		"the base":           {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4318"}, "http://h:4318/v1/traces", ""},
		"a path":             {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://h/otlp/"}, "https://h/otlp/v1/traces", ""},
		"the whole":          {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://h/t"}, "http://h/t", ""},
		"its protocol":       {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"}, "http://h/v1/traces", ""},
		"no address":         {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=here"}, "", "OTEL_EXPORTER_OTLP_ENDPOINT: not an address"},
		"no host":            {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://:4318"}, "", "OTEL_EXPORTER_OTLP_ENDPOINT: not an address"},
		"a strange scheme":   {[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=grpc://h"}, "", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: not an address"},
		"gRPC":               {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://h", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, "", "OTEL_EXPORTER_OTLP_PROTOCOL: only"},
		"no value":           {[]string{"OTEL_EXPORTER_OTLP_HEADERS=s3cret"}, "", "OTEL_EXPORTER_OTLP_HEADERS: not a list"},
		"no header's name":   {[]string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS=a b=s3cret"}, "", "OTEL_EXPORTER_OTLP_TRACES_HEADERS: not a list"},
		"a line break":       {[]string{"OTEL_EXPORTER_OTLP_HEADERS=a=s3cret%0d%0ab:c"}, "", "OTEL_EXPORTER_OTLP_HEADERS: not a list"},
		"half an escape":     {[]string{"OTEL_RESOURCE_ATTRIBUTES=a=s3cret%2"}, "", "OTEL_RESOURCE_ATTRIBUTES: not a list"},
		"no text":            {[]string{"OTEL_RESOURCE_ATTRIBUTES=a=s3cret%ff"}, "", "OTEL_RESOURCE_ATTRIBUTES: not a list"}, // protobuf takes none
		"attributes of ours": {[]string{"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test, team=core"}, "", ""},
	} {
		var s settings.Dispatcher
		err := settings.Load(&s, append(good(), tc.set...))
		switch {
		case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)):
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		case err != nil && strings.Contains(err.Error(), "s3cret"):
			t.Errorf("%s: %v", name, err)
		case err == nil && s.CollectorURL() != tc.url:
			t.Errorf("%s: %q, want %q", name, s.CollectorURL(), tc.url)
		}
	}
}

func TestHeadersOfTraces(t *testing.T) {
	var s settings.Dispatcher
	if err := settings.Load(&s, append(good(), "OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20t0ken, X-Key = v%2C1 ,")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"Authorization": "Bearer t0ken", "X-Key": "v,1"}, s.CollectorHeaders()); diff != "" {
		t.Error(diff)
	}
	for _, secret := range []string{"t0ken", "Bearer t0ken", "v,1"} {
		if got := settings.Secrets(s); !slices.Contains(got, secret) {
			t.Errorf("%q is not among the secrets %q", secret, got)
		}
	}
	if err := settings.Load(&s, append(good(), "OTEL_EXPORTER_OTLP_HEADERS=a=b", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=c=d")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"c": "d"}, s.CollectorHeaders()); diff != "" {
		t.Error(diff)
	}
}
