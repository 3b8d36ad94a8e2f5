package settings

import (
	"net/url"
	"reflect"
	"strings"
)

// Secrets are the values of a settings struct that must never be shown, passwords within URLs included.
func Secrets(v any) []string {
	var out []string
	collect(reflect.ValueOf(v), &out)
	return out
}

func collect(v reflect.Value, out *[]string) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if m, ok := reflect.TypeAssert[Models](v); ok {
		*out = append(*out, m.keys()...)
	}
	if t, ok := reflect.TypeAssert[Tools](v); ok {
		for _, secret := range t.Granted().Credentials.Values() {
			*out = append(append(*out, secret), urlPasswords(secret)...)
		}
	}
	if e, ok := reflect.TypeAssert[Encryption](v); ok {
		*out = append(*out, e.values()...)
	}
	if t, ok := reflect.TypeAssert[Traces](v); ok {
		*out = append(*out, t.tokens()...)
	}
	if x, ok := reflect.TypeAssert[RunIndex](v); ok {
		*out = append(*out, urlPasswords(x.Index)...)
	}
	if x, ok := reflect.TypeAssert[LongTerm](v); ok {
		*out = append(*out, urlPasswords(x.Memory)...)
	}
	if w, ok := reflect.TypeAssert[Worker](v); ok {
		*out = append(*out, urlPasswords(w.RedisURL)...)
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Anonymous:
			collect(v.Field(i), out)
		case f.Type.Kind() == reflect.String:
			text := v.Field(i).String()
			if f.Tag.Get("secret") == "true" && !strings.Contains(text, "://") && text != "none" {
				*out = append(*out, text)
			}
			*out = append(*out, passwords(text)...)
		}
	}
}

// passwords are those in comma-separated URLs.
func passwords(text string) []string {
	var out []string
	for u := range strings.SplitSeq(text, ",") {
		p, err := url.Parse(strings.TrimSpace(u))
		if err != nil || p.User == nil {
			continue
		}
		if pw, ok := p.User.Password(); ok {
			out = append(out, pw)
		} else if p.Scheme != "postgres" && p.Scheme != "postgresql" {
			out = append(out, p.User.Username()) // a token
		}
	}
	return out
}

// urlPasswords are those of the URL of a database, which may stand in two places and hold commas; none of another text.
func urlPasswords(text string) []string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" && u.RawQuery == "" {
		return nil
	}
	var out []string
	if pw, ok := u.User.Password(); ok {
		out = append(out, pw)
	}
	for _, name := range []string{"password", "sslpassword", "sentinel_password"} {
		out = append(out, u.Query()[name]...)
	}
	return out
}
