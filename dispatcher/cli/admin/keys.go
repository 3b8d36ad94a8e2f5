package admin

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/conn"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// keys are the commands about keys.
type keys struct{ *conn.Caller }

func (c keys) keys() *cobra.Command {
	cmd := &cobra.Command{Use: "keys", Short: "Make, list and revoke keys"}
	api := &cobra.Command{
		Use: "api", Short: "Make, list and revoke API keys for requests over HTTP",
		Long: "Make, list and revoke API keys. A key identifies a caller over HTTP, with its tenant and roles. Commands that use\n" +
			"NATS need no key: a NATS user with permission for longshore.keys may make keys.",
	}
	api.AddCommand(c.createKey(), c.listKeys(), c.revokeKey())
	cmd.AddCommand(api, c.keysControl())
	return cmd
}

// keyFlags are those of a new key.
type keyFlags struct {
	tenant, name, by, expires string
	roles                     []string
	output                    render.Format
}

func (f *keyFlags) spec(now time.Time) (spec dispatcher.KeySpec, err error) {
	spec = dispatcher.KeySpec{Tenant: f.tenant, Name: f.name, By: f.by}
	for _, r := range f.roles {
		spec.Roles = append(spec.Roles, control.AccessRole(r))
	}
	switch {
	case f.tenant == "":
		return spec, render.Usagef("--tenant is missing: give the tenant of the key, or '*' for all tenants")
	case len(f.roles) == 0:
		return spec, render.Usagef("--role is missing: viewer, submitter, approver, operator, author, granter or admin")
	}
	if err := control.CheckAccess(spec.Tenant, spec.Roles); err != nil {
		return spec, render.Misuse(err)
	}
	if f.expires != "" {
		d, err := lifetime(f.expires)
		if err != nil {
			return spec, err
		}
		spec.Expires = now.Add(d).UTC().Truncate(time.Second)
	}
	return spec, nil
}

// lifetime reads a time such as 90d or 12h.
func lifetime(s string) (time.Duration, error) {
	const most = 36500 // days
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= most {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	} else if d, err := time.ParseDuration(s); err == nil && d > 0 && d <= most*24*time.Hour {
		return d, nil
	}
	return 0, render.Usagef("--expires must be a time such as 90d or 12h")
}

func (c keys) createKey() *cobra.Command {
	var f keyFlags
	cmd := &cobra.Command{
		Use: "create", Short: "Make an API key and print it, once",
		Long: "Make an API key and print it. The fleet stores only its hash, and cannot show the key again.\n\n" +
			"Roles: viewer reads; submitter reads, submits and cancels; approver reads, decides and answers; operator reads, submits,\n" +
			"cancels and runs the fleet; admin does everything. A key for all tenants (--tenant '*') has viewer, operator or admin.",
		Example: "  longshore keys api create --tenant acme --role submitter --name ci --expires 90d\n" +
			"  longshore keys api create --tenant '*' --role admin",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec, err := f.spec(c.Options.Now())
			if err != nil {
				return err
			}
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				key, about, err := client.Keys().Create(cmd.Context(), spec)
				switch {
				case err != nil:
					return explainKey(err, "")
				case f.output.JSON:
					return c.WriteJSON(cmd, struct {
						Key string `json:"key"`
						control.APIKey
					}{key, about})
				}
				if err := render.Write(cmd.ErrOrStderr(), "key "+about.ID+": it is shown this once\n"); err != nil {
					return err
				}
				return render.Write(cmd.OutOrStdout(), key+"\n")
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tenant, "tenant", "", "tenant of the key, or '*' for all tenants")
	flags.StringSliceVar(&f.roles, "role", nil, "viewer, submitter, approver, operator, author, granter or admin; may be repeated")
	flags.StringVar(&f.name, "name", "", "name that says what the key is for")
	flags.StringVar(&f.expires, "expires", "", "how long the key is valid, such as 90d or 12h (default: until it is revoked)")
	c.ByFlag(cmd, &f.by)
	f.output.Register(cmd)
	return cmd
}

func (c keys) listKeys() *cobra.Command {
	var tenant string
	var output render.Format
	cmd := &cobra.Command{
		Use: "list", Short: "List the API keys", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				list, err := client.Keys().List(cmd.Context(), tenant)
				switch {
				case err != nil:
					return explainKey(err, "")
				case len(list.Keys) == 0 && !output.JSON:
					return render.Write(cmd.ErrOrStderr(), "no API keys: make one with `longshore keys api create`\n")
				case list.More:
					if err := render.Write(cmd.ErrOrStderr(), "there are more than these: give --tenant\n"); err != nil {
						return err
					}
				}
				if output.JSON {
					return conn.WriteLines(c.Caller, cmd, list.Keys)
				}
				return writeKeys(cmd.OutOrStdout(), list.Keys, c.Options.Now())
			})
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "only keys of this tenant")
	output.Register(cmd)
	return cmd
}

func (c keys) revokeKey() *cobra.Command {
	var by string
	var output render.Format
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Make an API key invalid",
		Long: "Make an API key invalid. Every dispatcher refuses it within ten seconds, and its open streams end.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return render.Usagef("needs the id of one key, got %d arguments", len(args))
			}
			if control.CheckKeyID(args[0]) != nil { // it may be the key itself: it is not shown
				return render.Usagef("the id of a key is the part between its underscores: see `longshore keys api list`")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.With(cmd.Context(), func(client *dispatcher.Client) error {
				change, err := client.Keys().Revoke(cmd.Context(), args[0], by)
				switch {
				case err != nil:
					return explainKey(err, args[0])
				case output.JSON:
					return c.WriteJSON(cmd, change)
				default:
					return render.Write(cmd.OutOrStdout(), "key "+args[0]+" is revoked\n")
				}
			})
		},
	}
	c.ByFlag(cmd, &by)
	output.Register(cmd)
	return cmd
}

func explainKey(err error, id string) error {
	if errors.Is(err, dispatcher.ErrNoKey) {
		return render.Worded(render.Visible(fmt.Sprintf("no key %s: see `longshore keys api list`", id)), err)
	}
	return render.Explain(err, messages.Ref{})
}

func writeKeys(w io.Writer, keys []control.APIKey, now time.Time) error {
	if len(keys) == 0 {
		return nil
	}
	table := render.NewTable(w)
	table.Row("ID", "TENANT", "ROLES", "NAME", "CREATED", "BY", "EXPIRES")
	for _, k := range keys {
		roles := make([]string, len(k.Roles))
		for i, r := range k.Roles {
			roles[i] = string(r)
		}
		expires := "never"
		switch {
		case k.Expires == nil:
		case k.Expires.After(now):
			expires = render.At(*k.Expires, now)
		default:
			expires = "expired"
		}
		table.Row(k.ID, k.Tenant, strings.Join(roles, ","), cmp.Or(k.Name, "-"), render.At(k.Created, now), cmp.Or(k.By, "-"), expires)
	}
	return table.Flush()
}
