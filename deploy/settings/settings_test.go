package settings_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/deploy/settings"
)

func good() []string {
	return []string{
		"NATS_URL=nats://127.0.0.1:4222", "REDIS_URL=redis://user:pa55word@127.0.0.1:6379", "OPENAI_API_KEY=sk-123456", "OPENAI_MODEL=m", "LONGSHORE_ENCRYPTION=off",
	}
}

func TestWorkerSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		set  []string // over the good ones; NAME= unsets
		want string   // begin of the error; empty: none
	}{
		"enough":                   {},
		"no NATS":                  {[]string{"NATS_URL="}, "NATS_URL is missing"},
		"no address":               {[]string{"NATS_URL=here"}, "NATS_URL: not an address"},
		"a strange scheme":         {[]string{"NATS_URL=http://x"}, "NATS_URL: the scheme"},
		"two credentials":          {[]string{"NATS_CREDS=a", "NATS_NKEY=b"}, "NATS_CREDS and NATS_NKEY contradict"},
		"credentials nowhere":      {[]string{"NATS_CREDS=/nowhere"}, "NATS_CREDS: open /nowhere"},
		"a seed nowhere":           {[]string{"NATS_NKEY=/nowhere"}, "NATS_NKEY: open /nowhere"},
		"certificates nowhere":     {[]string{"NATS_CA=/nowhere"}, "NATS_CA: open /nowhere"},
		"no address to listen on":  {[]string{"LONGSHORE_HTTP_ADDR=nowhere"}, "LONGSHORE_HTTP_ADDR: address nowhere: missing port"},
		"no port":                  {[]string{"LONGSHORE_HTTP_ADDR=127.0.0.1:66000"}, "LONGSHORE_HTTP_ADDR: address 127.0.0.1:66000: the port"},
		"any port":                 {[]string{"LONGSHORE_HTTP_ADDR=:0"}, ""},
		"no Redis":                 {[]string{"REDIS_URL="}, "REDIS_URL is missing"},
		"Redis on purpose not":     {[]string{"REDIS_URL=none"}, ""},
		"no provider":              {[]string{"OPENAI_API_KEY=", "OPENAI_MODEL="}, "no model provider configured"},
		"the scripted one":         {[]string{"OPENAI_API_KEY=", "OPENAI_MODEL=", "LONGSHORE_SCRIPT=s.yaml"}, ""},
		"no model":                 {[]string{"OPENAI_MODEL="}, "OPENAI_MODEL is missing"},
		"no key":                   {[]string{"OPENAI_API_KEY="}, "OPENAI_API_KEY is missing"},
		"a strange endpoint":       {[]string{"OPENAI_BASE_URL=here"}, "OPENAI_BASE_URL: not an address"},
		"Anthropic alone":          {[]string{"OPENAI_API_KEY=", "OPENAI_MODEL=", "ANTHROPIC_API_KEY=sk-123456", "ANTHROPIC_MODEL=m"}, ""},
		"Anthropic's model":        {[]string{"ANTHROPIC_API_KEY=sk-123456"}, "ANTHROPIC_MODEL is missing"},
		"Anthropic's key":          {[]string{"ANTHROPIC_MODEL=m"}, "ANTHROPIC_API_KEY is missing"},
		"Anthropic's address":      {[]string{"ANTHROPIC_API_KEY=sk-123456", "ANTHROPIC_MODEL=m", "ANTHROPIC_BASE_URL=here"}, "ANTHROPIC_BASE_URL: not an address"},
		"a model for run-lite":     {[]string{"OPENAI_LITE_MODEL=s", "OPENAI_LITE_BASE_URL=http://h/v1"}, ""},
		"run-lite without a key":   {[]string{"OPENAI_API_KEY=", "OPENAI_MODEL=", "LONGSHORE_SCRIPT=s.yaml", "OPENAI_LITE_MODEL=s"}, "OPENAI_API_KEY is missing: OPENAI_LITE_MODEL"},
		"run-lite's address":       {[]string{"OPENAI_LITE_BASE_URL=here"}, "OPENAI_LITE_BASE_URL: not an address"},
		"run-lite's password":      {[]string{"OPENAI_LITE_BASE_URL=http://me:pa55word@h/v1"}, "OPENAI_LITE_BASE_URL: not an address"},
		"slots that are no number": {[]string{"LONGSHORE_SLOTS=many"}, `LONGSHORE_SLOTS: must be a whole number such as 64, got "many"`},
		"no slots":                 {[]string{"LONGSHORE_SLOTS=0"}, "LONGSHORE_SLOTS: must be"},
		"not a time":               {[]string{"LONGSHORE_DRAIN_TIMEOUT=soon"}, `LONGSHORE_DRAIN_TIMEOUT: must be a time such as 30s, got "soon"`},
		"no attempts":              {[]string{"LONGSHORE_MAX_ATTEMPTS=0"}, "LONGSHORE_MAX_ATTEMPTS: must be"},
		"a short hook secret":      {[]string{"LONGSHORE_HOOK_SECRET=short"}, "LONGSHORE_HOOK_SECRET: must have"},
		"a hook switch":            {[]string{"LONGSHORE_HOOK_PRIVATE=maybe"}, `LONGSHORE_HOOK_PRIVATE: must be true or false, got "maybe"`},
		"a strange level":          {[]string{"LONGSHORE_LOG_LEVEL=loud"}, "LONGSHORE_LOG_LEVEL:"},
	} {
		t.Run(name, func(t *testing.T) {
			var s settings.Worker
			check(t, settings.Load(&s, with(tc.set)), tc.want)
		})
	}
}

func TestDispatcherSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		set  []string
		want string
	}{
		"enough":                    {},
		"an ack wait too short":     {[]string{"LONGSHORE_ACK_WAIT=1ms"}, "LONGSHORE_ACK_WAIT: must be"},
		"no address to listen on":   {[]string{"LONGSHORE_HTTP_ADDR=nowhere"}, "LONGSHORE_HTTP_ADDR: address nowhere: missing port"},
		"two replicas":              {[]string{"LONGSHORE_REPLICAS=2"}, "LONGSHORE_REPLICAS: must be"},
		"events of a minute":        {[]string{"LONGSHORE_RETENTION=30s", "LONGSHORE_EVENTS_MAX_AGE=1m"}, "LONGSHORE_EVENTS_MAX_AGE: must be at least 2m"},
		"letters of a minute":       {[]string{"LONGSHORE_DEAD_MAX_AGE=1m"}, "LONGSHORE_DEAD_MAX_AGE: must be at least 2m"},
		"events gone before purges": {[]string{"LONGSHORE_EVENTS_MAX_AGE=24h"}, "LONGSHORE_EVENTS_MAX_AGE must be longer"},
		"no time for run-lite":      {[]string{"LONGSHORE_LITE_TIMEOUT=0s"}, "LONGSHORE_LITE_TIMEOUT: must be"},
		"a sweep without a pause":   {[]string{"LONGSHORE_SWEEP=1ms"}, "LONGSHORE_SWEEP: must be"},
	} {
		t.Run(name, func(t *testing.T) {
			var s settings.Dispatcher
			check(t, settings.Load(&s, with(tc.set)), tc.want)
		})
	}
}

func with(set []string) []string {
	out := good()
	for _, kv := range set {
		name, value, _ := strings.Cut(kv, "=")
		out = slices.DeleteFunc(out, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		if value != "" {
			out = append(out, kv)
		}
	}
	return out
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	var se *settings.Error
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && (!errors.As(err, &se) || !strings.HasPrefix(err.Error(), want)):
		t.Errorf("error %v, want %q", err, want)
	case err != nil && (strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "sk-123456") || strings.Contains(err.Error(), "pa55word")):
		t.Errorf("the error is not one clean line: %q", err)
	}
}

func TestSecrets(t *testing.T) {
	var s settings.Worker
	if err := settings.Load(&s, append(with([]string{"NATS_URL=nats://me:s3cret-nats@h:4222,nats://t0ken-of-nats@h2"}), "ANTHROPIC_API_KEY=sk-ant-123", "ANTHROPIC_MODEL=m")); err != nil {
		t.Fatal(err)
	}
	got := settings.Secrets(s)
	for _, want := range []string{"sk-123456", "sk-ant-123", "pa55word", "s3cret-nats", "t0ken-of-nats"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among the secrets %q", want, got)
		}
	}
}

func TestSecretsOfSentinel(t *testing.T) {
	url := "redis+sentinel://worker:of-redis@a:1?master_name=m&sentinel_password=of-sentinel"
	got := settings.Secrets(&settings.Worker{RedisURL: url})
	if !slices.Contains(got, "of-redis") || !slices.Contains(got, "of-sentinel") {
		t.Errorf("got %q, want both passwords", got)
	}
}

func TestSecretsOfTheIndex(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://me:pass,word@h1,h2/db":        "pass,word",
		"postgres://me@h/db?password=pass%2Cword": "pass,word",
		"postgres://me@h/db?sslpassword=passw0rd": "passw0rd",
	} {
		if got := settings.Secrets(settings.Dispatcher{Serving: settings.Serving{RunIndex: settings.RunIndex{Index: url}}}); !slices.Contains(got, want) {
			t.Errorf("%s: %q", url, got)
		}
	}
}

// The page on configuration lists every variable with its default.
func TestEveryVariableIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range slices.Concat(settings.Variables(settings.Dispatcher{}), settings.Variables(settings.Worker{}), settings.Variables(settings.Dev{}), settings.Variables(settings.Audit{})) {
		found := false
		for line := range strings.Lines(string(page)) {
			found = found || strings.Contains(line, "`"+v.Name+"`") && strings.Contains(line, v.Default)
		}
		if !found {
			t.Errorf("%s with its default %q is not on the page", v.Name, v.Default)
		}
	}
	for _, v := range settings.Variables(settings.Worker{}) {
		if help := settings.Describe(&settings.Worker{}); !strings.Contains(help, v.Name) {
			t.Errorf("%s is not in the help", v.Name)
		}
	}
}

// A client without an address uses that of `longshore dev`; a worker needs one.
func TestClientsLookForNATSOnThisMachine(t *testing.T) {
	var client settings.Client
	if err := settings.Load(&client, nil); err != nil || client.URL != "nats://127.0.0.1:4222" {
		t.Errorf("%q, %v", client.URL, err)
	}
	client = settings.Client{}
	if err := settings.Load(&client, []string{"NATS_URL=nats://elsewhere:4333"}); err != nil || client.URL != "nats://elsewhere:4333" {
		t.Errorf("%q, %v", client.URL, err)
	}
	var worker settings.Worker
	check(t, settings.Load(&worker, nil), "NATS_URL is missing")
}
