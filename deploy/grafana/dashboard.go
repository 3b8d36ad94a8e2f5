package main

// dashboard is the part of Grafana's JSON model that ours use.
type dashboard struct {
	UID           string     `json:"uid"`
	Title         string     `json:"title"`
	Description   string     `json:"description"`
	Tags          []string   `json:"tags"`
	Timezone      string     `json:"timezone"`
	SchemaVersion int        `json:"schemaVersion"`
	Version       int        `json:"version"`
	Editable      bool       `json:"editable"`
	Refresh       string     `json:"refresh"`
	Time          span       `json:"time"`
	Templating    templating `json:"templating"`
	Panels        []*panel   `json:"panels"`

	y int // where the next row begins
}

type span struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type templating struct {
	List []variable `json:"list"`
}

// variable is a choice at the top of a dashboard.
type variable struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Label string `json:"label"`
	Query string `json:"query"`
}

// Types of panels.
const (
	typeRow  = "row"
	typeStat = "stat"
	typeTime = "timeseries"
)

type panel struct {
	ID          int          `json:"id"`
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	Description string       `json:"description,omitempty"`
	GridPos     place        `json:"gridPos"`
	Datasource  *source      `json:"datasource,omitempty"`
	FieldConfig *fieldConfig `json:"fieldConfig,omitempty"`
	Targets     []target     `json:"targets,omitempty"`
}

// place is where a panel is; a dashboard is 24 wide.
type place struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type fieldConfig struct {
	Defaults  fieldDefaults `json:"defaults"`
	Overrides []struct{}    `json:"overrides"`
}

type fieldDefaults struct {
	Unit string   `json:"unit"`
	Min  *float64 `json:"min,omitempty"`
}

// target is a query.
type target struct {
	RefID        string `json:"refId"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
}

// Units, as Grafana names them.
const (
	unitNumber  = "short"
	unitRate    = "ops"
	unitSeconds = "s"
	unitRatio   = "percentunit"
	unitDollars = "currencyUSD"
	unitBytes   = "binBps"
)

const (
	width      = 24
	rowHeight  = 1
	statHeight = 4
	timeHeight = 8
)

func newDashboard(uid, title, description string) *dashboard {
	return &dashboard{
		UID: uid, Title: title, Description: description, Tags: []string{"longshore"}, Timezone: "browser", SchemaVersion: 39, Version: 1,
		Editable: true, Refresh: "10s", Time: span{"now-1h", "now"},
		Templating: templating{[]variable{{"datasource", "datasource", "Data source", "prometheus"}}},
	}
}

// row begins a row with a title.
func (d *dashboard) row(title string) {
	d.put(&panel{Type: typeRow, Title: title}, place{0, d.y, width, rowHeight})
	d.y += rowHeight
}

// stats puts panels with one number each side by side.
func (d *dashboard) stats(panels ...*panel) { d.line(typeStat, statHeight, panels) }

// times puts panels with curves side by side.
func (d *dashboard) times(panels ...*panel) { d.line(typeTime, timeHeight, panels) }

func (d *dashboard) line(kind string, height int, panels []*panel) {
	w := width / len(panels)
	for i, p := range panels {
		p.Type = kind
		d.put(p, place{i * w, d.y, w, height})
	}
	d.y += height
}

func (d *dashboard) put(p *panel, at place) {
	p.ID, p.GridPos = len(d.Panels)+1, at
	d.Panels = append(d.Panels, p)
}

// ask is a panel of queries: pairs of a legend and an expression.
func ask(title, unit, description string, legendsAndExprs ...string) *panel {
	zero := 0.0
	p := &panel{
		Title: title, Description: description, Datasource: &source{"prometheus", "${datasource}"},
		FieldConfig: &fieldConfig{fieldDefaults{Unit: unit, Min: &zero}, []struct{}{}},
	}
	for i := 0; i+1 < len(legendsAndExprs); i += 2 {
		p.Targets = append(p.Targets, target{
			RefID: string(rune('A' + i/2)), LegendFormat: legendsAndExprs[i], Expr: legendsAndExprs[i+1],
		})
	}
	return p
}
