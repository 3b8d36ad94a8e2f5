package memory_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/worker/memory"
)

func TestConnectReadsTheURL(t *testing.T) {
	one, ok := connect(t, "rediss://worker:s3cret@redis.example:6380/2").(*redis.Client)
	if !ok {
		t.Fatal("one address: want a client")
	}
	o := one.Options()
	if o.Addr != "redis.example:6380" || o.DB != 2 || o.Username != "worker" || o.Password != "s3cret" ||
		o.TLSConfig == nil || !o.ContextTimeoutEnabled {
		t.Errorf("got addr %s, db %d, user %s, tls %t, want those of the URL", o.Addr, o.DB, o.Username, o.TLSConfig != nil)
	}
	several, ok := connect(t, "redis://worker:s3cret@a:1?addr=b:2&addr=c:3").(*redis.ClusterClient)
	if !ok {
		t.Fatal("several addresses: want a cluster client")
	}
	if got := strings.Join(several.Options().Addrs, " "); got != "a:1 b:2 c:3" {
		t.Errorf("got %s, want a:1 b:2 c:3", got)
	}
	// The address of the master is what the Sentinels say.
	watched, ok := connect(t, "rediss+sentinel://worker:s3cret@a:1/2?master_name=m&addr=b:2&sentinel_username=u&sentinel_password=p").(*redis.Client)
	if !ok {
		t.Fatal("Sentinels: want a client")
	}
	if o := watched.Options(); o.Addr != "FailoverClient" || o.DB != 2 || o.Username != "worker" || o.Password != "s3cret" ||
		o.TLSConfig == nil || !o.ContextTimeoutEnabled || o.MaxRetries != 0 {
		t.Errorf("got addr %s, db %d, user %s, tls %t, %d retries, want those of the URL", o.Addr, o.DB, o.Username, o.TLSConfig != nil, o.MaxRetries)
	}
}

func TestConnectRefusesWithoutTellingSecrets(t *testing.T) {
	for _, url := range []string{
		"",
		"s3cret",
		"s3cret://host",
		"redis://",
		"http://user:s3cret@host",
		"redis://user:s3cret/x@host:1",
		"redis://user:s3cret\x7f@host:1",
		"redis://user:12/s3cret@host:1",
		"redis://user:x@host:s3cret",
		"redis://user:x@host:1/s3cret",
		"redis://user:x@host:1?s3cret=1",
		"redis://user:x@host:1?db=s3cret",
		"redis://user:x@host:1?addr=s3cret",
		"redis://user:x@host:1/s3cret?addr=b:1",
		"redis://user:x@host:1/7?addr=b:1",
		"redis+sentinel://user:s3cret@host:1",
		"redis+sentinel://user:s3cret@host:1/s3cret?master_name=m",
		"redis+sentinel://user:s3cret@host:1?master_name=m&s3cret=1",
		"redis+sentinel://host:1?master_name=m&replica_only=true&sentinel_password=s3cret",
		"s3cret+sentinel://host:1?master_name=m",
	} {
		rdb, err := memory.Connect(url)
		if err == nil {
			rdb.Close()
			t.Errorf("%q: want an error", url)
			continue
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
