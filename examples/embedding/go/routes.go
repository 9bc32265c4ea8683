package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Route is a row of a route table; zero values mean any.
type Route struct {
	ID                           int32
	Scope, RuleIndex, MatchIndex int32
	Hostname, Method             string
	Name                         *string
	Path                         *Predicate
	Headers, Query               []Predicate
	CreatedAt                    float64
}

// Predicate is a text or a pattern: of a path, a header or a query parameter.
type Predicate struct{ Type, Name, Value string }

// Request is what routes are matched against. Texts are Latin-1: a character is a byte.
type Request struct {
	Method, Authority, Path, Query *string
	Headers                        [][2]string
	Expect                         any
}

type routes struct {
	*Core
	table   int32
	regexes []int32
}

func (c *Core) newRoutes() (*routes, error) {
	table, err := c.check(c.call("table_new"))
	return &routes{c, table, nil}, err
}

func (r *routes) free() {
	r.call("table_free", r.table)
	for _, regex := range r.regexes {
		r.call("regex_free", regex)
	}
}

// hostKey gives the kind of a hostname, and its bytes: those of a wildcard begin with the dot.
func (c *Core) hostKey(hostname string) (int32, string) {
	if hostname == "" {
		return c.abi["HOST_ANY"], ""
	}
	if strings.HasPrefix(hostname, "*.") {
		return c.abi["HOST_WILDCARD"], hostname[1:]
	}
	return c.abi["HOST_EXACT"], hostname
}

func (r *routes) addListener(hostname string, scope int32) (err error) {
	kind, host := r.hostKey(hostname)
	r.scratch(func() {
		_, err = r.check(r.call("listener_add", r.table, kind, r.put([]byte(host)), int32(len(host)), scope))
	})
	return err
}

// regexOf compiles the pattern of a predicate; 0 if it has none.
func (r *routes) regexOf(predicate Predicate) (handle int32, err error) {
	if predicate.Type != "regex" {
		return 0, nil
	}
	r.scratch(func() {
		source := []byte(predicate.Value)
		handle, err = r.check(r.call("regex_compile", r.put(source), int32(len(source)), r.abi["REGEX_MATCH_ONLY"]))
	})
	if err == nil {
		r.regexes = append(r.regexes, handle)
	}
	return handle, err
}

// specification is words where abi.ts draws them, and texts behind them, named by offset and length.
type specification struct{ bytes []byte }

func (s *specification) word(offset, value int32) {
	binary.LittleEndian.PutUint32(s.bytes[offset:], uint32(value))
}

func (s *specification) text(offset int32, text string) {
	s.word(offset, int32(len(s.bytes)))
	s.word(offset+4, int32(len(text)))
	s.bytes = append(s.bytes, text...)
}

func (route Route) name() string {
	if route.Name == nil {
		return fmt.Sprintf("n/%d", route.ID)
	}
	return *route.Name
}

func (r *routes) addRoute(route Route) error {
	predicates := append(append([]Predicate{}, route.Headers...), route.Query...)
	size := r.abi["ROUTE_PREDICATES"] + int32(len(predicates))*r.abi["PREDICATE_SIZE"]
	spec := specification{make([]byte, size)}
	path := Predicate{Type: "prefix", Value: "/"}
	if route.Path != nil {
		path = *route.Path
	}
	pathRegex, err := r.regexOf(path)
	if err != nil {
		return err
	}
	kind, host := r.hostKey(route.Hostname)
	spec.word(r.abi["ROUTE_ID"], route.ID)
	spec.word(r.abi["ROUTE_SCOPE"], route.Scope)
	spec.word(r.abi["ROUTE_HOST_KIND"], kind)
	spec.text(r.abi["ROUTE_HOST"], host)
	spec.word(r.abi["ROUTE_PATH_KIND"], r.abi["PATH_"+strings.ToUpper(path.Type)])
	spec.text(r.abi["ROUTE_PATH"], path.Value)
	spec.word(r.abi["ROUTE_PATH_REGEX"], pathRegex)
	binary.LittleEndian.PutUint64(spec.bytes[r.abi["ROUTE_CREATED"]:], math.Float64bits(route.CreatedAt))
	spec.text(r.abi["ROUTE_NAME"], route.name())
	spec.word(r.abi["ROUTE_RULE"], route.RuleIndex)
	spec.word(r.abi["ROUTE_MATCH"], route.MatchIndex)
	spec.text(r.abi["ROUTE_METHOD"], route.Method)
	spec.word(r.abi["ROUTE_FIELD_COUNT"], int32(len(route.Headers)))
	spec.word(r.abi["ROUTE_QUERY_COUNT"], int32(len(route.Query)))
	for i, predicate := range predicates {
		regex, err := r.regexOf(predicate)
		if err != nil {
			return err
		}
		at := r.abi["ROUTE_PREDICATES"] + int32(i)*r.abi["PREDICATE_SIZE"]
		if predicate.Type == "regex" {
			spec.word(at+r.abi["PREDICATE_KIND"], r.abi["PREDICATE_PATTERN"])
		} else {
			spec.word(at+r.abi["PREDICATE_KIND"], r.abi["PREDICATE_EXACT"])
		}
		spec.text(at+r.abi["PREDICATE_NAME"], predicate.Name)
		spec.text(at+r.abi["PREDICATE_VALUE"], predicate.Value)
		spec.word(at+r.abi["PREDICATE_REGEX"], regex)
	}
	r.scratch(func() {
		_, err = r.check(r.call("route_add", r.table, r.put(spec.bytes), int32(len(spec.bytes))))
	})
	return err
}

// match gives the id of the route, or a code: NO_ROUTE, NO_LISTENER.
func (r *routes) match(request Request) (id int32) {
	or := func(text *string, otherwise string) string {
		if text == nil {
			return otherwise
		}
		return *text
	}
	authority, path := or(request.Authority, "a"), or(request.Path, "/")
	host, target := authority, path
	colon := strings.LastIndex(authority, ":")
	if colon > strings.LastIndex(authority, "]") {
		host = authority[:colon]
	}
	// As the head reader does it: without the port, and without the dot of an absolute name.
	host = strings.TrimSuffix(host, ".")
	if request.Query != nil {
		target += "?" + *request.Query
	}
	r.scratch(func() {
		record := r.alloc(int(r.abi["HEAD_SIZE"]) + len(request.Headers)*int(r.abi["FIELD_SIZE"]))
		word := func(place uint32, value uint32) { r.module.Memory().WriteUint32Le(place, value) }
		at := func(name string) uint32 { return record + uint32(r.abi[name]) }
		text := func(place uint32, text string) {
			bytes := fromLatin1(text)
			start := r.put(bytes)
			word(place, start)
			word(place+4, start+uint32(len(bytes)))
		}
		for offset := uint32(0); offset < uint32(r.abi["HEAD_SIZE"]); offset += 4 {
			word(record+offset, math.MaxUint32)
		}
		word(at("HEAD_FIELD_COUNT"), uint32(len(request.Headers)))
		word(at("HEAD_FIELD_LIMIT"), uint32(len(request.Headers)))
		word(at("HEAD_FLAGS"), 0)
		text(at("HEAD_METHOD"), or(request.Method, "GET"))
		text(at("HEAD_AUTHORITY"), authority)
		text(at("HEAD_HOST"), host)
		text(at("HEAD_PATH"), path)
		text(at("HEAD_TARGET"), target)
		if request.Query != nil {
			text(at("HEAD_QUERY"), *request.Query)
		}
		for i, header := range request.Headers {
			field := at("HEAD_FIELDS") + uint32(i)*uint32(r.abi["FIELD_SIZE"])
			text(field+uint32(r.abi["FIELD_NAME"]), header[0])
			text(field+uint32(r.abi["FIELD_VALUE"]), header[1])
			word(field+uint32(r.abi["FIELD_INFO"]), 0)
		}
		id = r.call("match_request", r.table, record)
	})
	return id
}
