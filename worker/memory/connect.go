package memory

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	dialTimeout  = time.Second // continues in the background when an operation has given up
	readTimeout  = time.Second // only where a context has no deadline
	noRetries    = -1          // the circuit decides when to ask again
	dialAttempts = 1
)

// errURL tells nothing of the URL, every part of which may hold a piece of a password that was not escaped.
var errURL = errors.New("want redis://[user:password@]host:port[/db][?option=value], rediss:// for TLS, " +
	"addr=host:port for each further node of a cluster, and redis+sentinel://host:port?master_name=NAME (rediss+sentinel:// for TLS) " +
	"for Sentinel; escape special characters in a password with %XX")

// Connect returns a client for one Redis; for a cluster if the URL names further nodes (the same one again will do
// for a cluster behind one address); or for the master that Sentinels name. It does not connect yet. The options are those of
// go-redis; by default nothing is retried, and a dial may take a second. No error holds any part of the URL. The caller closes the client.
//
// The URL of Sentinels is redis+sentinel://user:password@host:port/db?master_name=NAME, with addr=host:port for each further one. User and
// password are those of the master; those of the Sentinels are the options sentinel_username and sentinel_password.
func Connect(redisURL string) (redis.UniversalClient, error) {
	u, err := url.Parse(redisURL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("redis url: %w", errURL)
	}
	switch u.Scheme {
	case "redis", "rediss":
	case "redis+sentinel", "rediss+sentinel":
		return connectSentinel(u)
	default:
		return nil, fmt.Errorf("redis url: %w", errURL)
	}
	if u.Query().Has("addr") {
		return connectCluster(u)
	}
	o, err := redis.ParseURL(redisURL)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", errURL)
	}
	own{&o.MaxRetries, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout}.set()
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

func connectCluster(u *url.URL) (redis.UniversalClient, error) {
	if strings.Trim(u.Path, "/0") != "" {
		return nil, errors.New("redis url: a cluster has database 0 alone")
	}
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", errURL)
	}
	own{&o.MaxRetries, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout}.set()
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClusterClient(o), nil
}

func connectSentinel(u *url.URL) (redis.UniversalClient, error) {
	at, q := *u, u.Query()
	if q.Get("master_name") == "" {
		return nil, errors.New("redis url: master_name is missing: the name under which Sentinel watches the master")
	}
	for _, option := range []string{"route_by_latency", "route_randomly", "replica_only"} {
		if q.Has(option) {
			return nil, fmt.Errorf("redis url: %s: workers read and write at the master alone", option)
		}
	}
	user, password := q.Get("sentinel_username"), q.Get("sentinel_password")
	for _, option := range []string{"sentinel_username", "sentinel_password"} {
		q.Del(option)
	}
	at.Scheme, at.User, at.RawQuery = strings.TrimSuffix(u.Scheme, "+sentinel"), nil, q.Encode()
	o, err := redis.ParseFailoverURL(at.String())
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", errURL)
	}
	o.SentinelUsername, o.SentinelPassword = user, password
	if u.User != nil {
		o.Username = u.User.Username()
		o.Password, _ = u.User.Password()
	}
	own{&o.MaxRetries, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout}.set()
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	return redis.NewFailoverClient(o), nil
}

// own are the options of each kind of client for which this package has defaults of its own.
type own struct {
	maxRetries, dialerRetries *int
	dialTimeout, readTimeout  *time.Duration
}

func (o own) set() {
	setDefault(o.maxRetries, noRetries)
	setDefault(o.dialerRetries, dialAttempts)
	setDefault(o.dialTimeout, dialTimeout)
	setDefault(o.readTimeout, readTimeout)
}

func setDefault[T comparable](field *T, value T) {
	*field = orDefault(*field, value)
}
