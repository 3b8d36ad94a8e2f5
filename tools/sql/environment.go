package sql

import (
	"errors"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// unnamed are the settings of a connection that the library would take from variables (PGPASSWORD and so on) or from files of the home
// folder (.pgpass, .postgresql) when a URL does not name them, with the values that they have instead.
const unnamed = "password=&passfile=&port=5432&sslmode=prefer&sslkey=&sslcert=&sslcertmode=allow&sslrootcert=&sslpassword=&sslsni=1" +
	"&sslnegotiation=postgres&target_session_attrs=any&servicefile=&connect_timeout=0&application_name=&timezone=&options=" +
	"&min_protocol_version=&max_protocol_version=&channel_binding=prefer&require_auth="

// parseURL reads the URL of a database. What the URL does not name has its default, whatever the environment of the process and the
// files of its user say. The error holds nothing of the URL.
func parseURL(dsn string) (*pgconn.Config, error) {
	named, head, query := namedIn(dsn)
	for _, key := range []string{"user", "host", "database"} {
		if !named[key] {
			return nil, errors.New("is a URL without a " + key + ": write postgres://user:password@host:5432/database")
		}
	}
	if named["service"] {
		return nil, errors.New("names a service: write its settings into the URL")
	}
	var params []string
	for param := range strings.SplitSeq(unnamed, "&") {
		if key, _, _ := strings.Cut(param, "="); !named[key] {
			params = append(params, param)
		}
	}
	if query != "" {
		params = append(params, query)
	}
	config, err := pgconn.ParseConfig(head + "?" + strings.Join(params, "&"))
	if err != nil && strings.Contains(err.Error(), "failed to read service") {
		return nil, errors.New("cannot be used while the variable PGSERVICE is set: start the worker without it")
	}
	if err != nil {
		return nil, errors.New("is not a URL that PostgreSQL understands") // the error may hold parts of it
	}
	for _, key := range []string{"options", "timezone"} { // a pooler may refuse them, even if they are empty
		if !named[key] {
			delete(config.RuntimeParams, key)
		}
	}
	config.RuntimeParams["application_name"] = "longshore"
	return config, nil
}

// namedIn are the settings that a URL names, and its parts before and after the question mark, as the library reads them.
func namedIn(dsn string) (named map[string]bool, head, query string) {
	named = map[string]bool{}
	scheme, rest, _ := strings.Cut(dsn, "://")
	login := ""
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		user, password, _ := strings.Cut(rest[:i], ":")
		named["user"], named["password"] = user != "", password != ""
		login, rest = rest[:i+1], rest[i+1:]
	}
	rest, query, _ = strings.Cut(rest, "?")
	place, database, _ := strings.Cut(rest, "/")
	named["host"], named["database"] = strings.Trim(place, ",") != "", database != ""
	named["port"] = strings.ContainsAny(place[strings.LastIndexByte(place, ']')+1:], ":,")
	for param := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(param, "=")
		if decoded, err := url.PathUnescape(key); err == nil {
			key = decoded
		}
		switch key {
		case "dbname":
			key = "database"
		case "ssl":
			key = "sslmode"
		}
		named[key] = value != ""
	}
	return named, scheme + "://" + login + rest, query
}
