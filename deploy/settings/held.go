package settings

import "cmp"

// Held are the secrets that one variable of an environment holds.
type Held struct {
	Variable string
	Values   []string
}

// HeldBy are the secrets of an environment by the variables that dispatchers and workers know, keys of the file of
// LONGSHORE_PROVIDERS and credentials of the file of LONGSHORE_TOOLS included. Variables are not checked. The error is about
// those files alone.
func HeldBy(environ []string) ([]Held, error) {
	var out []Held
	seen, vars := map[string]bool{}, environment(environ)
	for _, kind := range []func() any{func() any { return new(Worker) }, func() any { return new(Dispatcher) }, func() any { return new(Client) }} {
		for _, f := range fields(kind()) {
			if vars[f.name] == "" || seen[f.name] {
				continue
			}
			seen[f.name] = true
			alone := kind()
			if err := Read(alone, []string{f.name + "=" + vars[f.name]}); err != nil {
				continue // what is not a number holds no secret
			}
			if values := Secrets(alone); len(values) > 0 {
				out = append(out, Held{f.name, values})
			}
		}
	}
	if vars[toolsEnv] != "" {
		t := Tools{ToolsFile: vars[toolsEnv]}
		if err := t.readTools(environ); err != nil {
			return nil, err
		}
		if values := t.Granted().Credentials.Values(); len(values) > 0 {
			out = append(out, Held{toolsEnv, values})
		}
	}
	if vars[providersEnv] == "" {
		return out, nil
	}
	file, err := loadProviders(vars[providersEnv], vars)
	if err != nil {
		return nil, err
	}
	for i := range file.Providers {
		if p := &file.Providers[i]; p.Key != "" && !seen[p.KeyEnv] {
			out = append(out, Held{cmp.Or(p.KeyEnv, providersEnv), []string{p.Key}})
		}
	}
	return out, nil
}
