package sluice

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"strings"

	"sluice.dev/sluice/internal/abi"
)

// PathType says how the path of a [Route] matches.
type PathType int

// The types of paths.
const (
	PathPrefix PathType = iota // whole segments
	PathExact
	PathRegex
)

var pathKinds = map[PathType]int32{PathPrefix: abi.PathPrefix, PathExact: abi.PathExact, PathRegex: abi.PathRegex}

// Field is a condition on a header or on a query parameter.
type Field struct {
	Name, Value string
	// IsPattern says that Value is a regular expression that matches the whole value.
	IsPattern bool
}

// Route is a row of a [Router]. A condition that is not set is always met.
type Route struct {
	// ID is what Match returns. It must not be negative.
	ID       int32
	Path     string
	PathType PathType
	// Hostname may begin with "*.".
	Hostname string
	Method   string
	Headers  []Field
	Query    []Field
	// Of routes that match equally well, the older one wins, then the one whose name comes first. Created
	// is a number of milliseconds.
	Created float64
	Name    string
	// RuleIndex and MatchIndex decide after the name.
	RuleIndex, MatchIndex int32
	// Scope is that of the listener whose requests see the route.
	Scope int32
}

// Listener gives the requests for a hostname a scope. An empty hostname is any host.
type Listener struct {
	Hostname string
	Scope    int32
}

// Request is what routes are matched against.
type Request struct {
	// Target is the path, and the query if there is one.
	Target string
	// Method is GET if it is empty.
	Method string
	// Host may have a port.
	Host    string
	Headers [][2]string
}

// Router selects a route for a request, with the precedence of the Gateway API.
type Router struct{ table *compiled }

// NewRouter compiles routes. Without listeners there is one for any host, with scope 0.
func NewRouter(routes []Route, listeners ...Listener) (*Router, error) {
	routes = append([]Route(nil), routes...)
	listeners = append([]Listener(nil), listeners...)
	if len(listeners) == 0 {
		listeners = []Listener{{}}
	}
	table, err := newCompiled(corePool, "table_free", func(on *instance) int32 {
		table := on.checked("creating a table", "table_new")
		on.orUndo(func() { on.call("table_free", i32(table)) }, func() {
			for _, each := range listeners {
				kind, host := hostKey(each.Hostname)
				place, length := on.put([]byte(host))
				on.checked("adding a listener", "listener_add", i32(table), i32(kind), place, length, i32(each.Scope))
			}
			for _, each := range routes {
				addRoute(on, table, each)
			}
		})
		return table
	})
	if err != nil {
		return nil, err
	}
	return &Router{table}, nil
}

// Match returns the id of the route for a request, and false if there is none.
func (r *Router) Match(request Request) (id int32, ok bool, err error) {
	err = r.table.pool.run(func(on *instance) {
		table := r.table.handle(on)
		id = on.call("match_request", i32(table), putHead(on, request).arg())
		if id < 0 && id != abi.NoRoute && id != abi.NoListener {
			fail(&CoreError{"matching", codeName(id)})
		}
	})
	if err != nil || id < 0 {
		return 0, false, err
	}
	return id, true, nil
}

// MatchRequest is Match for a request that a server has received.
func (r *Router) MatchRequest(request *http.Request) (id int32, ok bool, err error) {
	match := Request{Target: request.URL.RequestURI(), Method: request.Method, Host: request.Host}
	for name, values := range request.Header {
		for _, value := range values {
			match.Headers = append(match.Headers, [2]string{name, value})
		}
	}
	return r.Match(match)
}

// hostKey returns the kind of a hostname, and its bytes: those of a wildcard begin with the dot.
func hostKey(hostname string) (kind int32, host string) {
	if hostname == "" {
		return abi.HostAny, ""
	}
	if strings.HasPrefix(hostname, "*.") {
		return abi.HostWildcard, hostname[1:]
	}
	return abi.HostExact, hostname
}

// specification has fixed words first. Texts follow, and are named by offset and length.
type specification []byte

func (s specification) word(offset int, value int32) {
	binary.LittleEndian.PutUint32(s[offset:], uint32(value))
}

func (s *specification) text(offset int, text string) {
	s.word(offset, int32(len(*s)))
	s.word(offset+4, int32(len(text)))
	*s = append(*s, text...)
}

func addRoute(on *instance, table int32, route Route) {
	regex := func(pattern string, isPattern bool) int32 {
		if !isPattern {
			return 0
		}
		handle := compilePattern(on, pattern, abi.RegexMatchOnly)
		// The table refers to the pattern.
		on.patterns = append(on.patterns, handle)
		return handle
	}
	place, length := on.put(specificationOf(route, regex))
	on.checked("adding a route", "route_add", i32(table), place, length)
}

func specificationOf(route Route, regex func(pattern string, isPattern bool) int32) specification {
	fields := append(append([]Field(nil), route.Headers...), route.Query...)
	spec := make(specification, abi.RoutePredicates+len(fields)*abi.PredicateSize)
	if route.Path == "" {
		route.Path = "/"
	}
	if route.Name == "" {
		route.Name = fmt.Sprintf("default/%010d", route.ID)
	}
	kind, host := hostKey(route.Hostname)
	spec.word(abi.RouteId, route.ID)
	spec.word(abi.RouteScope, route.Scope)
	spec.word(abi.RouteHostKind, kind)
	spec.text(abi.RouteHost, host)
	spec.word(abi.RoutePathKind, pathKinds[route.PathType])
	spec.text(abi.RoutePath, route.Path)
	spec.word(abi.RoutePathRegex, regex(route.Path, route.PathType == PathRegex))
	binary.LittleEndian.PutUint64(spec[abi.RouteCreated:], math.Float64bits(route.Created))
	spec.text(abi.RouteName, route.Name)
	spec.word(abi.RouteRule, route.RuleIndex)
	spec.word(abi.RouteMatch, route.MatchIndex)
	spec.text(abi.RouteMethod, route.Method)
	spec.word(abi.RouteFieldCount, int32(len(route.Headers)))
	spec.word(abi.RouteQueryCount, int32(len(route.Query)))
	for i, field := range fields {
		at := abi.RoutePredicates + i*abi.PredicateSize
		kind := int32(abi.PredicateExact)
		if field.IsPattern {
			kind = abi.PredicatePattern
		}
		spec.word(at+abi.PredicateKind, kind)
		spec.text(at+abi.PredicateName, field.Name)
		spec.text(at+abi.PredicateValue, field.Value)
		spec.word(at+abi.PredicateRegex, regex(field.Value, field.IsPattern))
	}
	return spec
}
