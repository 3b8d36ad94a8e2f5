package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages/control"
)

// An admin of a tenant makes keys that do no more than he may, sees no others and revokes no others.
func TestKeysOverHTTP(t *testing.T) {
	g := openGuarded(t)
	acme, all := g.key("acme", control.RoleAdmin), g.key(control.AllTenants, control.RoleAdmin)
	other := g.key("other", control.RoleViewer)
	idOf := func(header []string) string { return strings.Split(header[1], "_")[1] }
	with := func(header []string, more ...string) []string { return append(slices.Clone(header), more...) }

	var made control.NewKey
	g.do("POST", "/v1/keys", `{"roles":["submitter"],"name":"ci"}`, http.StatusCreated, &made, acme...)
	if made.Tenant != "acme" || made.Name != "ci" || made.By != "key:"+idOf(acme)+" (of acme)" || !strings.HasPrefix(made.Key, "lsk_"+made.ID+"_") {
		t.Errorf("made: %+v", made.APIKey)
	}
	ci := []string{"Authorization", "Bearer " + made.Key}
	g.do("GET", "/v1/tasks", "", http.StatusOK, nil, ci...)

	for name, tc := range map[string]struct {
		body   string
		header []string
		status int
	}{
		"of another tenant":             {`{"tenant":"other","roles":["viewer"]}`, acme, 403},
		"of all tenants":                {`{"tenant":"*","roles":["viewer"]}`, acme, 403},
		"of another tenant by header":   {`{"roles":["viewer"]}`, with(acme, "Longshore-Tenant", "other"), 403},
		"by a submitter":                {`{"roles":["viewer"]}`, ci, 403},
		"by an operator of all":         {`{"roles":["viewer"]}`, g.key(control.AllTenants, control.RoleOperator), 403},
		"without a role":                {`{}`, acme, 400},
		"with an unknown role":          {`{"roles":["king"]}`, acme, 400},
		"that has expired":              {`{"roles":["viewer"],"expires":"2020-01-01T00:00:00Z"}`, acme, 400},
		"with a chosen key":             {`{"roles":["viewer"],"key":"lsk_aaaaaaaaaaaa_b"}`, acme, 400},
		"another admin":                 {`{"roles":["admin"]}`, acme, 201},
		"with an end":                   {`{"roles":["viewer"],"expires":"` + time.Now().Add(time.Hour).Format(time.RFC3339) + `"}`, acme, 201},
		"of all by an admin of all":     {`{"tenant":"*","roles":["operator"]}`, all, 201},
		"of one by an admin of all":     {`{"roles":["approver"]}`, with(all, "Longshore-Tenant", "third"), 201},
		"of two tenants at once":        {`{"tenant":"fourth","roles":["viewer"]}`, with(all, "Longshore-Tenant", "third"), 403},
		"of all, with a role of tenant": {`{"tenant":"*","roles":["submitter"]}`, all, 400},
	} {
		t.Run(name, func(t *testing.T) {
			(&hall{t, g.dev, g.url}).do("POST", "/v1/keys", tc.body, tc.status, nil, tc.header...)
		})
	}

	list := func(header ...string) (tenants []string) {
		t.Helper()
		var l control.KeyList
		g.do("GET", "/v1/keys", "", http.StatusOK, &l, header...)
		for _, k := range l.Keys {
			tenants = append(tenants, k.Tenant)
		}
		slices.Sort(tenants)
		return slices.Compact(tenants)
	}
	for name, tc := range map[string]struct{ got, want []string }{
		"an admin of one":           {list(acme...), []string{"acme"}},
		"an admin of all":           {list(all...), []string{"*", "acme", "other", "third"}},
		"an admin of all about one": {list(with(all, "Longshore-Tenant", "third")...), []string{"third"}},
	} {
		if !slices.Equal(tc.got, tc.want) {
			t.Errorf("%s lists keys of %v", name, tc.got)
		}
	}

	g.do("DELETE", "/v1/keys/"+idOf(other), "", http.StatusNotFound, nil, acme...)
	g.do("DELETE", "/v1/keys/"+idOf(all), "", http.StatusNotFound, nil, acme...)
	g.do("DELETE", "/v1/keys/none", "", http.StatusNotFound, nil, acme...)
	g.do("GET", "/v1/tasks", "", http.StatusOK, nil, other...)
	g.do("DELETE", "/v1/keys/"+made.ID, "", http.StatusForbidden, nil, ci...)
	g.do("DELETE", "/v1/keys/"+made.ID, "", http.StatusOK, nil, acme...)
	g.do("DELETE", "/v1/keys/"+made.ID, "", http.StatusNotFound, nil, acme...)
	g.do("DELETE", "/v1/keys/"+idOf(other), "", http.StatusOK, nil, all...)
	if _, ok, err := g.stored(made.ID); ok || err != nil {
		t.Errorf("it is still there: %v", err)
	}
	secret := made.Key[strings.LastIndex(made.Key, "_")+1:]
	if strings.Contains(g.log.text(), secret) {
		t.Error("the log has the key")
	}
}

// stored looks for a key, as the command does.
func (g *guarded) stored(id string) (k control.APIKey, ok bool, err error) {
	l, err := g.client.Keys().List(g.t.Context(), "")
	if err != nil {
		return k, false, err
	}
	i := slices.IndexFunc(l.Keys, func(k control.APIKey) bool { return k.ID == id })
	if i < 0 {
		return k, false, nil
	}
	return l.Keys[i], true, nil
}

// Without authentication no keys are created.
func TestNoKeysWithoutAuth(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/keys", `{"roles":["admin"],"tenant":"*"}`, http.StatusForbidden, nil)
	h.do("GET", "/v1/keys", "", http.StatusForbidden, nil)
	h.do("DELETE", "/v1/keys/aaaaaaaaaaaa", "", http.StatusForbidden, nil)
}
